"""Trains a small model on the first GPU and prints PyTorch's own counters at its end as JSON.

--steps N training steps (3); --worker has a process load the data, and another train; --blocks N also holds N blocks of 128 MiB at the
end; --ranks trains as one of several ranks; --fail raises an error at the end; --cpu uses no GPU.
"""

import argparse
import json
import os
import subprocess

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--worker", action="store_true")
parser.add_argument("--blocks", type=int, default=0)
parser.add_argument("--ranks", action="store_true")
parser.add_argument("--fail", action="store_true")
parser.add_argument("--cpu", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
device = "cpu" if args.cpu else "cuda"


class Processes(torch.utils.data.IterableDataset):
    """Yields the id of the process that loads the data, endlessly."""

    def __iter__(self):
        while True:
            yield os.getpid()


def train_elsewhere():
    """Forty steps on the CPU in a child, which are not the program's."""
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
        return
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.ones(1)
    other = torch.optim.SGD([parameter])
    for _ in range(40):
        other.step()
    os._exit(0)


model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)])
rank = int(os.environ.get("LOCAL_RANK", "0"))
if args.ranks:
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
model = model.to(device)
trained = torch.nn.parallel.DistributedDataParallel(model) if args.ranks else model
optimizer = torch.optim.AdamW(model.parameters())
loader = iter(torch.utils.data.DataLoader(Processes(), num_workers=1 if args.worker else 0, batch_size=None))
for step in range(args.steps):
    print("step", step, "of rank", rank, "with the data of", next(loader), flush=True)
    loss = trained(torch.randn(256, 1024, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if args.worker and step == 0:
        train_elsewhere()
print("trained", flush=True)
held = [torch.empty(128 << 20, dtype=torch.uint8, device=device) for _ in range(args.blocks)]
model[0].bias[0].item()  # a loss, for example
bool(model[0].bias[0] > 2)  # unknown, and may decide something
if args.fail:
    raise RuntimeError("no more")
if not args.cpu:
    free, total = torch.cuda.mem_get_info()
    said = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    said.update(total=total, used=total - free, name=torch.cuda.get_device_name(), devices=torch.cuda.device_count())
    listed = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"], capture_output=True, check=True)
    print(json.dumps({**said, "visible": os.environ["CUDA_VISIBLE_DEVICES"], "listed": listed.stdout.decode()}))
