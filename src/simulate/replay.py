"""Replays the requests of a recording through PyTorch's caching allocator on a phantom GPU, once for each setting.

    python replay.py FOLDER

FOLDER/requests is written by pytorch_replay.cpp. FOLDER/jobs is JSON: "settings", texts as in PYTORCH_CUDA_ALLOC_CONF;
"fractions", for each device the share of its memory that the process may reserve, or null; "parallel", how many to replay at a
time. The allocator reads its settings when it is first used: so PyTorch is imported once, and each setting has a process that
was forked from there. FOLDER/result.INDEX holds what one found, as JSON, and is missing where it was killed.
"""

from __future__ import annotations

import array
import json
import operator
import os
import sys
from collections.abc import Iterable
from typing import Any

# Of whoever started this: none of it is meant for the replay.
for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "CUDA_VISIBLE_DEVICES"):
    os.environ.pop(name, None)

import torch  # noqa: E402
from torch import _C  # noqa: E402

# What the second number of a pair means, below 0.
FREE, FAILED, EMPTY_CACHE, DEVICE, STREAM, POOL, MOMENT, POOL_RELEASED = range(-1, -9, -1)
PAIR = 16  # bytes, as much as the header
CHUNK = PAIR << 16
COUNTERS = {
    "peak_allocated_bytes": "allocated_bytes.all.peak",
    "peak_reserved_bytes": "reserved_bytes.all.peak",
    "peak_active_bytes": "active_bytes.all.peak",
    "peak_inactive_split_bytes": "inactive_split_bytes.all.peak",
    "allocated_bytes": "allocated_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "retry_count": "num_alloc_retries",
    "segment_count": "segment.all.allocated",
    "end_segment_count": "segment.all.current",
}


def free_pieces(segments: Iterable[dict[str, Any]]) -> list[int]:
    """Sizes of the free blocks of segments; neighbours in an expandable one are joined already."""
    return [block["size"] for segment in segments for block in segment["blocks"] if block["state"] == "inactive"]


def state_of(device: int) -> dict[str, int | None]:
    counters = torch.cuda.memory_stats(device)
    found: dict[str, int | None] = {key: counters.get(name) for key, name in COUNTERS.items()}
    free = free_pieces(segment for segment in torch.cuda.memory_snapshot() if segment["device"] == device)
    return found | {"largest_free_bytes": max(free, default=0), "free_count": len(free)}


class Replay:
    def __init__(self, fractions: list[float | None]) -> None:
        self.stream = self.device = self.pool = 0
        self.known_pools: set[tuple[int, int]] = set()
        self.releases: dict[tuple[int, int], int] = {}
        self.passed_failures = 0
        self.peaks: list[dict[str, int | None] | None] = [None] * len(fractions)
        torch.cuda.init()
        for device, fraction in enumerate(fractions):
            if fraction is not None:
                torch.cuda.set_per_process_memory_fraction(fraction, device)

    def set_pool(self, pool: int) -> None:
        """PyTorch counts the users of a pool: the first beginning stands for the program, and the others are taken back."""
        if self.pool:
            number = self.pool_number(self.pool)
            _C._cuda_endAllocateToPool(self.device, number)
            if number in self.known_pools:
                _C._cuda_releasePool(self.device, number)
            self.known_pools.add(number)
        if pool:
            _C._cuda_beginAllocateToPool(self.device, self.pool_number(pool))
        self.pool = pool

    def pool_number(self, pool: int) -> tuple[int, int]:
        """One of its own after each release. The device is part of it: pools with one number are counted for each device."""
        return (self.device + 1, pool + (self.releases.get((self.device, pool), 0) << 16))

    def release_pool(self, pool: int) -> None:
        current = self.pool
        self.set_pool(0)
        number = self.pool_number(pool)
        if number in self.known_pools:
            _C._cuda_releasePool(self.device, number)
            self.releases[self.device, pool] = self.releases.get((self.device, pool), 0) + 1
        self.set_pool(current)

    def set_device(self, device: int) -> None:
        pool = self.pool
        self.set_pool(0)
        self.device = device
        torch.cuda.set_device(device)
        self.set_pool(pool)

    def try_failed(self, size: int) -> None:
        try:
            pointer = _C._cuda_cudaCachingAllocator_raw_alloc(size, self.stream)
        except torch.cuda.OutOfMemoryError:
            return
        self.passed_failures += 1
        _C._cuda_cudaCachingAllocator_raw_delete(pointer)

    def do(self, operation: int, operand: int) -> None:
        if operation == FAILED:
            self.try_failed(operand)
        elif operation == EMPTY_CACHE:
            _C._cuda_emptyCache()
        elif operation == DEVICE:
            self.set_device(operand)
        elif operation == STREAM:
            self.stream = operand
        elif operation == POOL:
            self.set_pool(operand)
        elif operation == POOL_RELEASED:
            self.release_pool(operand)
        elif operation == MOMENT:
            self.peaks[operand] = state_of(operand)

    def run(self, path: str) -> int | None:
        """The pair at which memory ran out; None where it did not."""
        allocate, delete = _C._cuda_cudaCachingAllocator_raw_alloc, _C._cuda_cudaCachingAllocator_raw_delete
        with open(path, "rb") as file:
            pointers = [0] * int.from_bytes(file.read(PAIR)[8:], "little")
            while chunk := file.read(CHUNK):
                numbers = array.array("q", chunk)
                rest = iter(numbers)
                try:
                    for operand, second in zip(rest, rest):
                        if second >= 0:
                            pointers[operand] = allocate(second, self.stream)
                        elif second == FREE:
                            delete(pointers[operand])
                        else:
                            self.do(second, operand)
                except torch.cuda.OutOfMemoryError:
                    left = operator.length_hint(rest) // 2
                    return (file.tell() - left * PAIR) // PAIR - 2
        return None


def replay(folder: str, setting: str, fractions: list[float | None]) -> dict[str, Any]:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = setting
    replayed = Replay(fractions)
    failed_pair = replayed.run(os.path.join(folder, "requests"))
    replayed.set_pool(0)
    snapshot: Any = torch.cuda.memory._snapshot()
    used = snapshot["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"]
    if used != setting:
        raise RuntimeError(f"PyTorch did not take the settings {setting!r}, but {used!r}")
    return {
        "failed_pair": failed_pair,
        "passed_failures": replayed.passed_failures,
        "peaks": replayed.peaks,
        "ends": [state_of(device) for device in range(len(fractions))],
    }


def have_own_gpus(folder: str, index: int) -> None:
    """Gives a replay a folder of its own, with the same profile: processes with one folder share the memory of its devices."""
    own = os.path.join(folder, f"phantom.{index}")
    os.mkdir(own, 0o700)
    os.symlink(os.path.join(folder, "device"), os.path.join(own, "device"))
    os.environ["TIDEMARK_PHANTOM"] = own


def replay_in_child(folder: str, index: int, setting: str, fractions: list[float | None]) -> None:
    if os.fork() != 0:
        return
    try:
        have_own_gpus(folder, index)
        result = replay(folder, setting, fractions)
    except Exception as error:
        result = {"error": str(error).splitlines()[0] if str(error) else type(error).__name__}
    path = os.path.join(folder, f"result.{index}")
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.rename(path + ".part", path)
    os._exit(0)


def main(folder: str) -> None:
    with open(os.path.join(folder, "jobs"), encoding="utf-8") as file:
        jobs = json.load(file)
    running = 0
    for index, setting in enumerate(jobs["settings"]):
        if running == jobs["parallel"]:
            os.wait()
            running -= 1
        replay_in_child(folder, index, setting, jobs["fractions"])
        running += 1
    for _ in range(running):
        os.wait()


if __name__ == "__main__":
    main(sys.argv[1])
