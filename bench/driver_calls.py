"""What `tidemark run --driver on` adds to a call of the CUDA driver, beside the same call unrecorded.

    tidemark run -q -o /tmp/calls.tide --driver on -- python bench/driver_calls.py

Recording is switched on and off every few calls inside one process, and each turn compared with the one before it; while
it is off, CUPTI does not call us. Prints the median difference for an allocation and for a free.
"""

import argparse
import ctypes
import json
import statistics
import sys
import time

import torch

library = ctypes.CDLL(None)
if not hasattr(library, "tidemark_pause"):
    sys.exit("run this under `tidemark run --driver on`")
torch.zeros(1, device="cuda")  # makes the context
cuda = ctypes.CDLL("libcuda.so.1")
address = ctypes.c_uint64()
out = ctypes.byref(address)


def check(result):
    if result != 0:
        sys.exit(f"the driver refuses: CUresult {result}")


# name: (allocate, its free, bytes, blocks held at one time)
CALLS = {
    "cuMemAlloc of 512 bytes": (cuda.cuMemAlloc_v2, cuda.cuMemFree_v2, 512, 200),
    "cuMemAlloc of 64 MiB": (cuda.cuMemAlloc_v2, cuda.cuMemFree_v2, 64 << 20, 20),
    "cuMemAllocAsync of 1 MiB, in a pool that holds it": (
        lambda out, size: cuda.cuMemAllocAsync(out, size, None),
        lambda address: cuda.cuMemFreeAsync(address, None),
        1 << 20,
        500,
    ),
    "cuMemAllocHost of 64 KiB": (cuda.cuMemAllocHost_v2, cuda.cuMemFreeHost, 64 << 10, 50),
}


def turn(allocate, free, size, blocks):
    """Nanoseconds of an allocation and of a free."""
    addresses = []
    began = time.perf_counter_ns()
    for _ in range(blocks):
        check(allocate(out, size))
        addresses.append(ctypes.c_uint64(address.value))
    between = time.perf_counter_ns()
    for block in addresses:
        check(free(block))
    return (between - began) / blocks, (time.perf_counter_ns() - between) / blocks


def keep_pool():
    """A pool that is never trimmed: otherwise every synchronization takes its memory away."""
    handle = ctypes.c_void_p()
    check(cuda.cuDeviceGetDefaultMemPool(ctypes.byref(handle), 0))
    release_threshold = 4
    check(cuda.cuMemPoolSetAttribute(handle, release_threshold, ctypes.byref(ctypes.c_uint64(1 << 40))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    args = parser.parse_args()
    keep_pool()
    figures = {}
    for name, (allocate, free, size, blocks) in CALLS.items():
        plain, added = ([], []), ([], [])  # allocations, frees
        for index in range(args.rounds + 3):
            times = {}
            for on in (index % 2 == 0, index % 2 != 0):
                (library.tidemark_resume if on else library.tidemark_pause)()
                turn(allocate, free, size, 2)  # whatever switching disturbs is not measured
                times[on] = turn(allocate, free, size, blocks)
            for which in (0, 1) if index >= 3 else ():
                plain[which].append(times[False][which])
                added[which].append(times[True][which] - times[False][which])
        figures[name] = {}
        for which, what in enumerate(("allocation", "free")):
            low, middle, high = statistics.quantiles(added[which], n=4)
            usual = statistics.median(plain[which])
            figures[name][what] = {"plain_ns": usual, "added_ns": middle, "added_quartiles_ns": [low, high]}
            print(f"{name}, {what}: {usual:,.0f} ns, recorded {middle:+,.0f} ns (quartiles {low:+,.0f}..{high:+,.0f})")
    library.tidemark_resume()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
