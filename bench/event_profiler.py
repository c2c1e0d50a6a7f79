"""The cost of a call of the event profiler's record() for its caller: python bench/event_profiler.py [calls]

Needs the tidemark package on PYTHONPATH; with a GPU (a phantom one will do) events have its counters. Prints microseconds of
the calling thread's processor time for each call, the minimum and the median of rounds, with and without a log.
"""

from __future__ import annotations

import logging
import os
import statistics
import sys
import tempfile
import time

from tidemark.events import GPUMemoryProfiler
from tidemark.events.counters import DeviceCounters

ROUNDS = 20


def cost_us(profiler: GPUMemoryProfiler, calls: int) -> tuple[float, float]:
    """The minimum and the median of rounds."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        for _ in range(calls):
            profiler.record("forward", "loss=0.1234")
        rounds.append((time.thread_time() - began) / calls * 1e6)
        time.sleep(0.1)  # the log's thread writes
    return min(rounds), statistics.median(rounds)


def main() -> None:
    """Prints a line for each way."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    cuda = DeviceCounters().cuda
    if cuda:
        import torch

        kept = torch.empty(2**20, device="cuda")
        print(f"counters of {torch.cuda.get_device_name()}, {kept.nbytes} bytes in use")
        began = time.thread_time()
        for _ in range(calls):
            torch.cuda.memory_allocated()
        print(f"torch.cuda.memory_allocated(): {(time.thread_time() - began) / calls * 1e6:.2f} us")
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # the console's echo
    logging.raiseExceptions = False
    with tempfile.TemporaryDirectory() as folder:
        for log in (False, True):
            profiler = GPUMemoryProfiler(folder, enable_file_logging=log)
            least, median = cost_us(profiler, calls)
            profiler.cleanup()
            way = f"{'CUDA' if cuda else 'CPU'}, {'with a log' if log else 'without a log'}"
            print(f"{way}: {least:.2f} us least, {median:.2f} us median")


if __name__ == "__main__":
    main()
