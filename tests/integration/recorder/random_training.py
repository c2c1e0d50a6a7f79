"""Random models in training, some of them at the same time on threads of their own: with hooks that change activations and gradients,
checkpoints, and modules that are replaced while they train. The same numbers each time, to the bit.
"""

import random
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

STEPS = 4


class Residual(nn.Module):
    """Calls a module twice."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(self.inner(x))


class Checkpointed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


class Training:
    """One model. All choices come from `seed`, and are made before any thread starts."""

    def __init__(self, seed, device):
        self.choose = random.Random(seed)
        torch.manual_seed(seed)
        self.device, self.width, self.losses = device, self.choose.choice((8, 24, 40)), []
        self.model = nn.Sequential(nn.Linear(self.width, self.width), *(self.part(3) for _ in range(self.choose.randint(2, 5)))).to(device)
        self.spares = [nn.Linear(self.width, self.width).to(device) for _ in range(STEPS)]
        self.batches = [torch.randn(self.choose.randint(1, 9), self.width).to(device) for _ in range(STEPS)]
        optimizer = self.choose.choice((torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop))
        self.optimizer = optimizer(self.model.parameters(), lr=0.01)
        for module in self.model.modules():
            self.hook(module)
        for parameter in self.model.parameters():
            if self.choose.random() < 0.3:
                parameter.register_hook(lambda gradient: gradient * 0.5)

    def part(self, depth):
        kind = self.choose.randrange(7 if depth else 4)
        if kind < 4:
            return (nn.Linear(self.width, self.width), nn.Tanh(), nn.GELU(), nn.LayerNorm(self.width))[kind]
        inner = self.part(depth - 1)
        return (Residual(inner), Checkpointed(inner), nn.Sequential(inner, self.part(depth - 1)))[kind - 4]

    def hook(self, module):
        kind = self.choose.randrange(6)
        if kind == 0:
            module.register_forward_hook(lambda _, given, made: made * 1.25)
        elif kind == 1:
            module.register_forward_pre_hook(lambda _, given: (given[0] + 0.125,))
        elif kind == 2 and not any(isinstance(each, Checkpointed) for each in self.model.modules()):
            module.register_full_backward_hook(lambda _, gradients, given: (gradients[0] * 0.75,) if gradients[0] is not None else None)

    def run(self):
        for batch, spare in zip(self.batches, self.spares):
            self.optimizer.zero_grad()
            loss = self.model(batch).square().mean()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item().hex())
            self.model[len(self.losses) % len(self.model)] = spare  # the replaced module dies


def losses(device, count=16):
    """The losses of each step of each model."""
    trainings = [Training(seed, device) for seed in range(count)]
    alone, together = trainings[: count // 2], trainings[count // 2 :]
    for training in alone:
        training.run()
    threads = [threading.Thread(target=training.run) for training in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [loss for training in trainings for loss in training.losses]
