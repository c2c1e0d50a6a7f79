"""One rank of a job with a StepGuard on the CPU, in several scenes; the memory of its device is counted by this program.

Run once for each of three ranks with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Prints what happened in each scene as JSON.
"""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import tidemark

LENGTHS = [4, 6, 9, 5, 12, 7, 10]
BYTES = 1000  # for each token
# The last one leaves the process group unusable.
SCENES = ("plain", "ddp", "ahead", "equal", "fails", "unknown", "skip", "stop", "twice", "absent")


class Counted:
    """A device whose peak is what the program says it takes."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._peak = 0
        self.fails_at: set[int] = set()
        self.asked = 0

    def take(self, size: int) -> None:
        self._peak = max(self._peak, size)

    def allocated(self) -> int:
        return 0

    def peak(self) -> int:
        return self._peak

    def reset_peak(self) -> None:
        self._peak = 0

    def empty(self) -> None:
        pass

    def room(self, needed: float, emptied: bool) -> int:
        self.asked += 1
        if self.asked in self.fails_at and not emptied:
            raise OSError("the driver does not answer")
        return self._room


def model_and_batches(rank: int, samples: int, lengths: list[int]) -> tuple[Any, list[Any]]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(32, 8), nn.Flatten(0, 1), nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    draw = torch.Generator().manual_seed(100 + rank)
    return model, [torch.randint(0, 32, (samples, length), generator=draw) for length in lengths]


def loss_of(model: Any, tokens: Any) -> Any:
    values = model(tokens).reshape(len(tokens), -1)
    return values.square().mean(dim=1).mean()


def run(guard: Any, memory: Counted, model: Any, data: Any) -> dict[str, Any]:
    """Trains; the decisions, and the gradients after each step."""
    told: dict[str, Any] = {"decisions": [], "gradients": [], "parts": []}
    for tokens in data:
        sizes = []
        for part in guard.parts(tokens):
            memory.take(BYTES * part.batch.numel())
            (loss_of(model, part.batch) * part.weight).backward()
            sizes.append(len(part.batch))
        decision = guard.decision
        told["decisions"].append([decision.action, decision.parts, decision.rank, decision.failed_rank])
        told["parts"].append(sizes)
        gradients = [parameter.grad for parameter in model.parameters()]
        told["gradients"].append(None if gradients[0] is None else [gradient.flatten().tolist() for gradient in gradients])
        model.zero_grad(set_to_none=True)
    return told


def scene(name: str, rank: int, world: int) -> dict[str, Any]:
    samples = 6 if rank != 2 else 2
    lengths = [*LENGTHS, 40, 5] if rank == 1 or name == "skip" else [*LENGTHS, 8, 5]
    model, data = model_and_batches(rank, samples, lengths)
    memory = Counted(100 * BYTES)
    options: dict[str, Any] = {"memory": memory, "timeout": 20, "margin": 0.0}
    if name == "plain":  # what torch computes without a guard
        ddp = nn.parallel.DistributedDataParallel(model)
        gradients = []
        for tokens in data:
            loss_of(ddp, tokens).backward()
            gradients.append([parameter.grad.flatten().tolist() for parameter in model.parameters()])
            model.zero_grad(set_to_none=True)
        return {"gradients": gradients}
    if name == "ddp":
        ddp = nn.parallel.DistributedDataParallel(model)
        return run(tidemark.StepGuard(ddp, **options), memory, ddp, data)
    if name == "ahead":
        ddp = nn.parallel.DistributedDataParallel(model)
        guard = tidemark.StepGuard(ddp, **options)
        return run(guard, memory, ddp, guard.batches(data))
    if name == "equal":  # the model is not DDP: parts may have collectives
        return run(tidemark.StepGuard(model, **options), memory, model, data)
    if name == "fails":
        ddp = nn.parallel.DistributedDataParallel(model)
        memory.fails_at = {4, 5} if rank == 0 else set()
        return run(tidemark.StepGuard(ddp, **options), memory, ddp, data)
    if name == "unknown":
        ddp = nn.parallel.DistributedDataParallel(model)

        def shape(tokens: Any) -> tuple[int, int]:
            if rank == 0 and tokens.shape[1] == 8:
                raise KeyError("lengths")
            return tuple(tokens.shape)  # type: ignore[return-value]

        return run(tidemark.StepGuard(ddp, shape=shape, **options), memory, ddp, data)
    if name in ("skip", "stop"):
        if rank == 1:
            memory._room = 20 * BYTES
            data[:-2] = [tokens[:1] for tokens in data[:-2]]
        ddp = nn.parallel.DistributedDataParallel(model)
        guard = tidemark.StepGuard(ddp, otherwise=name, **options)
        try:
            return run(guard, memory, ddp, data)
        except tidemark.StepStopped as error:
            return {"stopped": str(error), "decision": [error.decision.action, error.decision.rank], "counts": guard.counts}
    if name == "absent":  # one rank does not ask
        guard = tidemark.StepGuard(model, **{**options, "timeout": 2})
        try:
            if rank == 0:
                list(guard.parts(data[0]))
            return {"error": None}
        except tidemark.TidemarkError as error:
            return {"error": str(error)}
    if name == "twice":  # one rank asks twice for one step
        guard = tidemark.StepGuard(model, **options)
        list(guard.parts(data[0]))
        if rank == 0:
            guard._steps += 1
        try:
            list(guard.parts(data[0]))
            return {"error": None}
        except tidemark.TidemarkError as error:
            return {"error": str(error)}
    raise AssertionError(name)


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    told = {name: scene(name, rank, world) for name in SCENES}
    print(json.dumps(told), flush=True)
    if rank != 0:
        time.sleep(5)  # until the first rank has given up: it could not reach a rank that has ended
    os._exit(0)  # the group is not usable any more


if __name__ == "__main__":
    main()
