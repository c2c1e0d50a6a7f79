"""What recording costs a training step, beside the plain program and PyTorch's own memory history.

Run it under `tidemark run`; the stacks that are recorded are those of that command:

    tidemark run -q -o /tmp/overhead.tide --stacks python -- python bench/overhead.py --workload dense

Machines drift by tens of percent from minute to minute, so whole runs cannot be compared. Here all variants run in one
process and take turns every few steps; each turn is compared with the plain turn of the same round, and the median over
all rounds is reported with its quartiles. What else runs on a machine only ever adds time, so the fastest quarter of the
turns of each variant, compared with the plain one's, is reported too: where the two disagree, the machine was noisy.
"""

import argparse
import contextlib
import ctypes
import json
import os
import statistics
import sys
import time

import torch
from trackers import memory_profiler, memory_tracker
from workloads import WORKLOADS

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
    """What a turn of each name runs in."""
    found = {"plain": contextlib.nullcontext, "tidemark": tidemark}
    if peers:
        found["torch history, python stacks"] = lambda: history("python")
        found["torch history, all stacks"] = lambda: history("all")
    if trackers:
        found["MemTracker"] = lambda: memory_tracker(model, optimizer)
        found["profiler, memory timeline"] = memory_profiler
    return found


def fastest_quarter(seconds):
    return statistics.mean(sorted(seconds)[: (len(seconds) + 3) // 4])


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
    torch.manual_seed(0)
    model, optimizer, step = WORKLOADS[args.workload](device)
    contexts = variants(model, optimizer, args.peers, args.trackers)
    names = list(contexts)

    def turn(name):
        with contexts[name]() as tool:
            after_step = getattr(tool, "reset_mod_stats", lambda: None)  # MemTracker wants to know
            step()  # whatever switching disturbs is not measured
            after_step()
            if device.type == "cuda":
                torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(args.steps):
                step()
                after_step()
            if device.type == "cuda":
                torch.cuda.synchronize()
            return (time.perf_counter() - began) / args.steps

    library.tidemark_pause()
    for name in list(names):
        try:
            for _ in range(3):
                turn(name)
        except RuntimeError as error:
            print(f"  {name}: {error}")
            names.remove(name)
    times = {name: [] for name in names}
    for index in range(args.rounds):
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            times[name].append(turn(name))
    library.tidemark_resume()

    figures = {}
    print(f"{args.workload} on {device}, torch {torch.__version__}, stacks {os.environ.get('TIDEMARK_STACKS')}, "
          f"{args.rounds} rounds of {args.steps} steps")
    for name in names:
        ratios = [ours / plain for ours, plain in zip(times[name], times["plain"])]
        low, middle, high = statistics.quantiles(ratios, n=4)
        milliseconds = statistics.median(times[name]) * 1e3
        fastest = fastest_quarter(times[name]) / fastest_quarter(times["plain"])
        figures[name] = {"step_ms": milliseconds, "ratio": middle, "ratio_quartiles": [low, high], "fastest": fastest}
        print(f"  {name:30}  {milliseconds:8.3f} ms a step   {middle:.3f}x plain   "
              f"(quartiles {low:.3f}..{high:.3f}, fastest quarter {fastest:.3f}x)")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"workload": args.workload, "device": str(device), "torch": torch.__version__,
                       "stacks": os.environ.get("TIDEMARK_STACKS"), "variants": figures}, file, indent=1)


if __name__ == "__main__":
    main()
