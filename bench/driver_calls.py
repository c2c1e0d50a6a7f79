"""The cost that a subscriber of CUPTI adds to calls of the CUDA driver: one that does nothing, and `tidemark run --driver on`.

    tidemark run -q -f -o /tmp/calls.tide --driver on -- python bench/driver_calls.py

First Tidemark's recording is switched on and off every few calls, then the callbacks of an empty subscriber; while they
are off, CUPTI calls no subscriber. Each turn is compared with the plain one before or after it. Prints the medians for an
allocation and for a free: the empty callback's cost is CUPTI's own, the difference is Tidemark's. Needs libcuda and a
libcupti from PyTorch or LD_LIBRARY_PATH.
"""

import argparse
import contextlib
import ctypes
import json
import statistics
import sys
import time

with contextlib.suppress(ImportError):
    import torch  # noqa: F401: it brings CUPTI

DRIVER_API = 1  # CUPTI_CB_DOMAIN_DRIVER_API

library = ctypes.CDLL(None)
cuda = ctypes.CDLL("libcuda.so.1")
address = ctypes.c_uint64()
out = ctypes.byref(address)

# name: (allocate, its free, bytes, live blocks, their ids for CUPTI)
CALLS = {
    "cuMemAlloc of 512 bytes": (cuda.cuMemAlloc_v2, cuda.cuMemFree_v2, 512, 200, (243, 245)),
    "cuMemAlloc of 64 MiB": (cuda.cuMemAlloc_v2, cuda.cuMemFree_v2, 64 << 20, 20, (243, 245)),
    "cuMemAllocAsync of 1 MiB, in a pool that holds it": (
        lambda out, size: cuda.cuMemAllocAsync(out, size, None),
        lambda address: cuda.cuMemFreeAsync(address, None),
        1 << 20,
        500,
        (598, 600),
    ),
    "cuMemAllocHost of 64 KiB": (cuda.cuMemAllocHost_v2, cuda.cuMemFreeHost, 64 << 10, 50, (294, 38)),
}


def check(result):
    if result != 0:
        sys.exit(f"the driver or CUPTI refuses: {result}")


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


def use_device():
    """A context, and a pool that is never trimmed: otherwise every synchronization releases its memory."""
    check(cuda.cuInit(0))
    handle = ctypes.c_void_p()
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0))
    check(cuda.cuCtxSetCurrent(handle))
    check(cuda.cuDeviceGetMemPool(ctypes.byref(handle), 0))
    release_threshold = 4
    check(cuda.cuMemPoolSetAttribute(handle, release_threshold, ctypes.byref(ctypes.c_uint64(1 << 40))))


def switch_tidemark(on):
    (library.tidemark_resume if on else library.tidemark_pause)()


def empty_subscriber():
    """Takes the subscription from Tidemark; returns the function that switches its callbacks."""
    with open("/proc/self/maps") as maps:
        cupti = ctypes.CDLL(next(line.split()[-1] for line in maps if "/libcupti.so" in line))
    subscriber = ctypes.c_void_p()
    # abs() looks at its first argument and does nothing else.
    check(cupti.cuptiSubscribe(ctypes.byref(subscriber), ctypes.cast(library.abs, ctypes.c_void_p), None))

    def switch(on):
        for number in {number for call in CALLS.values() for number in call[4]}:
            check(cupti.cuptiEnableCallback(int(on), subscriber, DRIVER_API, number))

    return switch


def measure(switch, rounds):
    """name: the cost added to the plain call, (of an allocation, of a free), in ns: all rounds; and the plain times."""
    figures = {}
    for name, (allocate, free, size, blocks, _) in CALLS.items():
        plain, added = ([], []), ([], [])
        for index in range(rounds + 3):
            times = {}
            for on in (index % 2 == 0, index % 2 != 0):
                switch(on)
                turn(allocate, free, size, 2)  # discards the effects of switching
                times[on] = turn(allocate, free, size, blocks)
            for which in (0, 1) if index >= 3 else ():
                plain[which].append(times[False][which])
                added[which].append(times[True][which] - times[False][which])
        figures[name] = plain, added
    switch(False)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    args = parser.parse_args()
    if not hasattr(library, "tidemark_pause"):
        sys.exit("run this under `tidemark run --driver on`")
    use_device()
    recorded = measure(switch_tidemark, args.rounds)
    empty = measure(empty_subscriber(), args.rounds)
    figures = {}
    for name in CALLS:
        figures[name] = {}
        for which, what in enumerate(("allocation", "free")):
            figure = {"plain_ns": statistics.median(recorded[name][0][which] + empty[name][0][which])}
            for who, measured in (("empty", empty), ("tidemark", recorded)):
                low, middle, high = statistics.quantiles(measured[name][1][which], n=4)
                figure |= {f"{who}_added_ns": middle, f"{who}_added_quartiles_ns": [low, high]}
            figures[name][what] = figure
            print(
                f"{name}, {what}: {figure['plain_ns']:,.0f} ns; empty callback {figure['empty_added_ns']:+,.0f} ns, "
                f"tidemark {figure['tidemark_added_ns']:+,.0f} ns (quartiles "
                + "..".join(f"{bound:+,.0f}" for bound in figure["tidemark_added_quartiles_ns"])
                + f"), that is {figure['tidemark_added_ns'] - figure['empty_added_ns']:+,.0f} ns of its own"
            )
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
