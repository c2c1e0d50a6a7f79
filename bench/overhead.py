"""The cost of recording for a training step, compared with the plain program and PyTorch's own memory history.

Run it under `tidemark run`, which determines the recorded stacks:

    tidemark run -q -o /tmp/overhead.tide --stacks python -- python bench/overhead.py --workload dense

Machines drift by tens of percent from minute to minute, so whole runs cannot be compared. Here all variants run in one
process and take turns every few steps; each turn is compared with the plain turn of the same round, and the median over
all rounds is reported with its quartiles and a 95% interval (bootstrap). By three clocks:

- wall: time from the first step to the moment when the device has finished the last one. Other programs on the machine only
  add to it, so the fastest quarter of the turns of each variant, compared with the plain one's, is reported too.
- processor: of all of the process's threads, until the last step has returned. If launching kernels takes the
  time, this is the cost of a step: the main thread runs the forward pass and the optimizer, a thread of PyTorch the backward
  pass, and waiting counts for neither (the device is configured so that threads that wait for it sleep).
- main thread: only of that thread. Time of threads that wait for work by spinning (OpenMP's) is left out.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import random
import statistics
import sys
import time

import torch
from trackers import memory_profiler, memory_tracker
from workloads import WORKLOADS

CLOCKS = ("wall", "processor", "main thread")

library = ctypes.CDLL(None)
if not hasattr(library, "tidemark_pause"):
    sys.exit("run this under `tidemark run`")


@contextlib.contextmanager
def tidemark():
    library.tidemark_resume()
    yield
    library.tidemark_pause()


@contextlib.contextmanager
def history(stacks):
    torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks=stacks, max_entries=200_000)
    yield
    torch.cuda.memory._record_memory_history(enabled=None)


def variants(model, optimizer, peers, trackers):
    """The context for a turn of each name."""
    found = {"plain": contextlib.nullcontext, "tidemark": tidemark}
    if peers:
        found["torch history, python stacks"] = lambda: history("python")
        found["torch history, all stacks"] = lambda: history("all")
    if trackers:
        found["MemTracker"] = lambda: memory_tracker(model, optimizer)
        found["profiler, memory timeline"] = memory_profiler
    return found


def sleep_while_waiting():
    """Makes threads that wait for device 0 sleep instead of spinning. Call it before PyTorch makes the device's context."""
    driver = ctypes.CDLL("libcuda.so.1")
    blocking_sync = 4  # CU_CTX_SCHED_BLOCKING_SYNC
    if driver.cuInit(0) != 0 or driver.cuDevicePrimaryCtxSetFlags_v2(0, blocking_sync) != 0:
        print("the device cannot be told not to spin: processor time has what a step waits for it")


def recorder_seconds():
    """Processor time of the recorder so far: `tidemark run`, the parent of this process."""
    threads = pathlib.Path(f"/proc/{os.getppid()}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def turn(context, step, steps, synchronize):
    """Seconds a step, by each clock."""
    with context() as tool:
        after_step = getattr(tool, "reset_mod_stats", lambda: None)  # needed by MemTracker
        step()  # discards the effects of switching
        after_step()
        synchronize()
        began = time.perf_counter(), time.process_time(), time.thread_time()
        for _ in range(steps):
            step()
            after_step()
        worked = time.process_time(), time.thread_time()
        synchronize()
        ended = time.perf_counter(), *worked
        return {clock: (end - begin) / steps for clock, begin, end in zip(CLOCKS, began, ended)}


def median_interval(values, resamples=2000):
    """The interval of the median: 95% of the medians of resampled values lie in it."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(resamples))
    return [medians[resamples // 40], medians[-1 - resamples // 40]]


def fastest_quarter(seconds):
    return statistics.mean(sorted(seconds)[: (len(seconds) + 3) // 4])


def compare(ours, plain):
    """Turns of a variant compared with the plain turns of the same rounds, by one clock."""
    ratios = [one / other for one, other in zip(ours, plain)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"step_ms": statistics.median(ours) * 1e3, "ratio": middle, "ratio_quartiles": [low, high],
            "ratio_interval": median_interval(ratios), "fastest": fastest_quarter(ours) / fastest_quarter(plain)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=WORKLOADS, default="dense")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=12, help="steps of each turn")
    parser.add_argument("--peers", action="store_true", help="measure PyTorch's memory history too (needs a GPU)")
    parser.add_argument("--trackers", action="store_true", help="measure torch's MemTracker and the profiler's memory timeline too (needs a GPU)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    args = parser.parse_args()
    device = torch.device(args.device)
    synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    if device.type == "cuda":
        sleep_while_waiting()
    torch.manual_seed(0)
    model, optimizer, step = WORKLOADS[args.workload](device)
    contexts = variants(model, optimizer, args.peers, args.trackers)
    names = list(contexts)

    library.tidemark_pause()
    for name in list(names):
        try:
            for _ in range(3):
                turn(contexts[name], step, args.steps, synchronize)
        except RuntimeError as error:
            print(f"  {name}: {error}")
            names.remove(name)
    turns = {name: [] for name in names}
    recorder, program = 0.0, 0.0  # seconds of processor time while recording
    for index in range(args.rounds):
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            before = recorder_seconds()
            turns[name].append(turn(contexts[name], step, args.steps, synchronize))
            if name == "tidemark":
                recorder += recorder_seconds() - before
                program += turns[name][-1]["processor"] * args.steps
    library.tidemark_resume()

    figures = {}
    print(f"{args.workload} on {device}, torch {torch.__version__}, stacks {os.environ.get('TIDEMARK_STACKS')}, "
          f"attribution {os.environ.get('TIDEMARK_ATTRIBUTE', 'on')}, {args.rounds} rounds of {args.steps} steps")
    for name in names:
        figures[name] = {clock: compare(*([taken[clock] for taken in turns[which]] for which in (name, "plain"))) for clock in CLOCKS}
        for clock, found in figures[name].items():
            quartiles, interval = ("{:.3f}..{:.3f}".format(*found[key]) for key in ("ratio_quartiles", "ratio_interval"))
            print(f"  {name:30}  {clock:11}  {found['step_ms']:8.3f} ms a step   {found['ratio']:.3f}x plain   "
                  f"(95% {interval}, quartiles {quartiles}, fastest quarter {found['fastest']:.3f}x)")
    print(f"  the recorder, a process of its own, took {recorder / program:.3f} of the program's processor time while it recorded")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"workload": args.workload, "device": str(device), "torch": torch.__version__,
                       "stacks": os.environ.get("TIDEMARK_STACKS"), "attribution": os.environ.get("TIDEMARK_ATTRIBUTE", "on"),
                       "variants": figures}, file, indent=1)


if __name__ == "__main__":
    main()
