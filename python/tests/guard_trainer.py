"""A small transformer whose batches have rare long sequences; as a program, on a GPU: a plain loop, and one with a StepGuard.

Prints as JSON whether the plain loop ran out of memory, and the guarded one's decisions and all values of its memory counters:
a CPU, which computes real values, repeats the guarded loop with them.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import torch
from torch import nn

import tidemark
from tidemark.step_guard.memory import CudaMemory

STEPS = 24
LONG_STEPS = (14, 19)


class Attention(nn.Module):  # type: ignore[misc,unused-ignore]
    """Scores are kept for the backward pass: memory grows with the square of the length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        query, key, value = self.inputs(self.norm(x)).chunk(3, dim=-1)
        scores = (query @ key.transpose(1, 2) / query.shape[-1] ** 0.5).softmax(dim=-1)
        return x + self.output(scores @ value)


class Model(nn.Module):  # type: ignore[misc,unused-ignore]
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64, width)
        self.layers = nn.ModuleList(Attention(width) for _ in range(layers))
        self.head = nn.Linear(width, 64)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def make(device: str, width: int = 64, layers: int = 3) -> tuple[Any, Any]:
    """A model in double precision, and its optimizer."""
    torch.manual_seed(7)
    model = Model(width, layers).double().to(device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def lengths(steps: int = STEPS, longest: int = 640, usual: int = 128) -> list[int]:
    draw = random.Random(11)
    return [longest if step in LONG_STEPS else draw.randint(usual // 2, usual) for step in range(steps)]


def batches(device: str, sizes: list[int], samples: int = 8) -> Any:
    """Token ids and targets."""
    draw = torch.Generator().manual_seed(5)
    for length in sizes:
        yield torch.randint(0, 64, (samples, length, 2), generator=draw).to(device).unbind(dim=2)


def mean_loss(model: Any, batch: Any) -> Any:
    tokens, targets = batch
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def train(model: Any, optimizer: Any, data: Any, guard: Any = None) -> list[tuple[str, int]]:
    """One optimizer step for each batch. The decisions of the guard."""
    decisions = []
    for batch in data:
        if guard is None:
            mean_loss(model, batch).backward()
        else:
            for part in guard.parts(batch):
                (mean_loss(model, part.batch) * part.weight).backward()
            decisions.append((guard.decision.action, guard.decision.parts))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return decisions


class Recorded(CudaMemory):
    """The counters, and their values."""

    def __init__(self) -> None:
        super().__init__(0)
        self.values: list[int] = []

    def _kept(self, value: int) -> int:
        self.values.append(value)
        return value

    def allocated(self) -> int:
        return self._kept(super().allocated())

    def peak(self) -> int:
        return self._kept(super().peak())

    def room(self, needed: float, emptied: bool) -> int:
        return self._kept(super().room(needed, emptied))


class Repeated:
    """The same values again."""

    def __init__(self, values: list[int]) -> None:
        self._values = iter(values)

    def allocated(self) -> int:
        return next(self._values)

    def peak(self) -> int:
        return next(self._values)

    def reset_peak(self) -> None:
        pass

    def room(self, needed: float, emptied: bool) -> int:
        return next(self._values)

    def empty(self) -> None:
        pass


def main(limit_mib: int, compares: bool) -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    unlimited = None
    if compares:  # a simulated GPU computes nothing
        model, optimizer = make("cuda")
        train(model, optimizer, batches("cuda", lengths()))
        unlimited = [parameter.detach().clone() for parameter in model.parameters()]
        del model, optimizer
        torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(limit_mib * 2**20 / total)
    died = None
    model, optimizer = make("cuda")
    try:
        train(model, optimizer, batches("cuda", lengths()))
    except torch.cuda.OutOfMemoryError as error:
        died = str(error).partition(".")[0]
    del model, optimizer
    torch.cuda.empty_cache()
    model, optimizer = make("cuda")
    memory = Recorded()
    guard = tidemark.StepGuard(model, memory=memory)
    decisions = train(model, optimizer, batches("cuda", lengths()), guard)
    told: dict[str, Any] = {"died": died, "decisions": decisions, "values": memory.values, "counts": guard.counts}
    if unlimited is not None:
        told["difference"] = max(float((one - other).abs().max()) for one, other in zip(model.parameters(), unlimited))
    print(json.dumps(told))


if __name__ == "__main__":
    main(int(sys.argv[1]), "--compare" in sys.argv)
