"""One step of a small model on the first GPU: its memory grows with the batch and with the width.

--fail raises an error if the batch is 3. --grad-checkpointing recomputes the activations of both halves of the model.
"""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=1)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--fail", action="store_true")
parser.add_argument("--grad-checkpointing", action="store_true")
args = parser.parse_args()
if args.fail and args.batch_size == 3:
    raise RuntimeError("three is too many")

import torch  # noqa: E402, which takes seconds
import torch.utils.checkpoint  # noqa: E402

torch.set_num_threads(1)


class Keeps(torch.autograd.Function):
    """Keeps so many Python objects for the backward pass that freeing them takes longer than the rest of the program."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = [object() for _ in range(100_000)]
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


model = torch.nn.Sequential(*[torch.nn.Linear(args.width, args.width) for _ in range(4)]).to("cuda")
data = torch.zeros(args.batch_size, 1024, args.width, device="cuda")
optimizer = torch.optim.SGD(model.parameters())
if args.grad_checkpointing:
    torch.utils.checkpoint.checkpoint_sequential(model, 2, data, use_reentrant=False).sum().backward()
else:
    model(data).sum().backward()
optimizer.step()
# The interpreter ends right after backward(), while a thread of PyTorch still frees Python objects.
Keeps.apply(model(data).sum()).backward()
