"""One rank of a job that searches its batch size, in several scenes; the memory of its device is counted by this program.

Run once for each of two ranks with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Prints what happened in each scene as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import tidemark
from tidemark.memory_manager import batch_size

GIB = 1 << 30
# The last one leaves the process group unusable.
SCENES = (
    "limits",
    "fails_on_one",
    "peaks",
    "one_is_first",
    "error",
    "arguments",
    "alone",
    "communicates",
    "ddp",
    "planned",
    "hangs",
)


class Device:
    """A device with counters, in place of PyTorch's."""

    def __init__(self, limit: int, constant: int, each: int) -> None:
        self.limit, self.constant, self.each = limit, constant, each
        self.sizes: list[int] = []
        self.state = 0  # optimizer state, which the first step leaves
        self.taken = 0

    def step(self, size: int) -> None:
        self.sizes.append(size)
        self.taken = self.constant + self.each * size
        if self.taken > self.limit:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    def install(self) -> None:
        device = self

        class Meter:
            def __init__(self, number: int) -> None:
                self._steps = len(device.sizes)

            def peak(self) -> int:
                return device.taken

            def kept(self) -> int:
                return device.state if self._steps == 0 else 0

        batch_size.PeakMeter = Meter  # type: ignore[assignment,misc]
        batch_size.memory_limit = lambda number: device.limit  # type: ignore[assignment]
        batch_size.device_number = lambda chosen: 0  # type: ignore[assignment]
        batch_size.free_caches = lambda number=None: None  # type: ignore[assignment]


def found(fn: Any, **options: Any) -> dict[str, Any]:
    try:
        return dataclasses.asdict(tidemark.auto_batch_size(fn, timeout=120, **options))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def limited(largest: int) -> Any:
    def step(size: int) -> None:
        if size > largest:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    return step


def on_device(device: Device, fn: Any = None, **options: Any) -> dict[str, Any]:
    names = ("PeakMeter", "memory_limit", "device_number", "free_caches")
    kept = {name: getattr(batch_size, name) for name in names}
    device.install()
    try:
        return {**found(fn or device.step, **options), "sizes": device.sizes}
    finally:
        for name, value in kept.items():
            setattr(batch_size, name, value)


def scene(name: str, rank: int) -> dict[str, Any]:
    if name == "limits":  # on the CPU: each rank's own bound, the other one higher
        return found(limited((100, 20)[rank]), start=4, maximum=50, max_probes=20, device="cpu")
    if name == "fails_on_one":
        return found(limited((100, 0)[rank]), maximum=50, device="cpu")
    if name == "peaks":  # rank 1 has less memory, rank 0 needs more at large sizes
        return on_device(Device((80 * GIB, 40 * GIB)[rank], (2 * GIB, 10 * GIB)[rank], (GIB // 2, GIB // 5)[rank]))
    if name == "one_is_first":
        device = Device(40 * GIB, 2 * GIB, GIB // 10)
        device.state = (GIB, 0)[rank]
        return on_device(device)
    if name == "error":

        def wrong(size: int) -> None:
            if rank == 1 and size == 8:
                raise KeyError("labels")

        return found(wrong, start=8, maximum=50, device="cpu")
    if name == "arguments":
        return found(limited(100), maximum=50 + rank, device="cpu")
    if name == "alone":
        return found(limited((30, 20)[rank]), maximum=50, max_probes=20, device="cpu", process_group=False)
    if name == "communicates":
        return found(lambda size: dist.all_reduce(torch.zeros(2)), maximum=50, device="cpu")
    if name == "ddp":  # the module below the wrapper does not communicate
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        ddp = torch.nn.parallel.DistributedDataParallel(model)
        ddp(torch.ones(2, 4)).sum().backward()

        def step(size: int) -> None:
            limited((100, 40)[rank])(size)
            ddp.module(torch.ones(size + 1, 4)).sum().backward()

        below = found(step, maximum=64, max_probes=20, device="cpu")
        wrapped = found(lambda size: ddp(torch.ones(size + 1, 4)).sum().backward(), maximum=64, device="cpu")
        return {**below, "wrapped": wrapped["error"]}
    if name == "planned":
        return on_device(Device(GIB, 0, 1), plan=["python", "{batch_size}"])
    if name == "hangs":  # rank 1 runs out of memory, and rank 0 waits for it in a collective of another group
        group = dist.new_group([0, 1])

        def meets(size: int) -> None:
            limited((100, 0)[rank])(size)
            dist.all_reduce(torch.zeros(2), group=group)

        try:
            tidemark.auto_batch_size(meets, maximum=50, device="cpu", timeout=2)
            return {"error": None}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
    raise AssertionError(name)


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=300))
    rank = dist.get_rank()
    for name in SCENES[:-1]:
        print(json.dumps({name: scene(name, rank)}), flush=True)
    if rank == 1:
        print(json.dumps({SCENES[-1]: scene(SCENES[-1], rank)}), flush=True)
        os._exit(0)  # the other rank is in a collective
    try:
        scene(SCENES[-1], rank)  # ends by the other rank's end, or never
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
