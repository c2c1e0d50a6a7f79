"""What `tidemark run --driver on` adds to a call of the CUDA driver, beside the same call unrecorded.

    tidemark run -q -o /tmp/calls.tide --driver on -- python bench/driver_calls.py

Recording is switched on and off every few calls inside one process, and each turn compared with the one before it; while
it is off, CUPTI does not call us. Prints the median difference for each pair of an allocation and its free.
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


def allocate(size, calls):
    for _ in range(calls):
        check(cuda.cuMemAlloc_v2(out, size))
        check(cuda.cuMemFree_v2(address))


def pool(size, calls):
    for _ in range(calls):
        check(cuda.cuMemAllocAsync(out, size, None))
        check(cuda.cuMemFreeAsync(address, None))


def host(size, calls):
    for _ in range(calls):
        check(cuda.cuMemAllocHost_v2(out, size))
        check(cuda.cuMemFreeHost(address))


# name: (function, bytes, calls in a turn)
CALLS = {
    "cuMemAlloc of 512 bytes": (allocate, 512, 200),
    "cuMemAlloc of 64 MiB": (allocate, 64 << 20, 20),
    "cuMemAllocAsync of 1 MiB, in a pool that holds it": (pool, 1 << 20, 500),
    "cuMemAllocHost of 64 KiB": (host, 64 << 10, 50),
}


def turn(function, size, calls):
    began = time.perf_counter_ns()
    function(size, calls)
    return (time.perf_counter_ns() - began) / calls


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
    for name, (function, size, calls) in CALLS.items():
        plain, added = [], []
        for index in range(args.rounds + 3):
            times = {}
            for on in (index % 2 == 0, index % 2 != 0):
                (library.tidemark_resume if on else library.tidemark_pause)()
                function(size, 2)  # whatever switching disturbs is not measured
                times[on] = turn(function, size, calls)
            if index >= 3:
                plain.append(times[False])
                added.append(times[True] - times[False])
        low, middle, high = statistics.quantiles(added, n=4)
        figures[name] = {"plain_ns": statistics.median(plain), "added_ns": middle, "added_quartiles_ns": [low, high]}
        print(f"{name} and its free: {statistics.median(plain):,.0f} ns, recorded {middle:+,.0f} ns (quartiles {low:+,.0f}..{high:+,.0f})")
    library.tidemark_resume()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
