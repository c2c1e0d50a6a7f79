"""The programs that bench/peers.py runs under each tool; prints its own measurements as JSON, with the tensors' sizes.

    python bench/peers_program.py wide --steps 10 --tool profiler --output trace.json

--tool starts one from inside; without it, run the program under `tidemark run` or `memray run`. `--tool storages` adds up the storages
of all live tensors, as created by PyTorch's dispatcher (slow: not for timing).
"""

import argparse
import collections
import contextlib
import json
import pathlib
import sys
import time
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from workloads import WORKLOADS

CLOCKS = time.perf_counter, time.process_time


class StorageSum(TorchDispatchMode):
    """Bytes of the live storages, each once, from the operator that makes one until its Python object is gone; at the peak also
    by the requesting line of workloads.py.
    """

    def __init__(self):
        super().__init__()
        self.alive, self.now, self.peak, self.lines = {}, 0, 0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(results):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor.untyped_storage())
        return results

    def see(self, storage):
        key = storage._cdata
        if key in self.alive:
            return
        frame = sys._getframe()
        while frame and not frame.f_code.co_filename.endswith("workloads.py"):
            frame = frame.f_back
        self.alive[key] = storage.nbytes(), frame.f_lineno if frame else 0
        self.now += storage.nbytes()
        if self.now > self.peak:
            self.peak, self.lines = self.now, collections.Counter()
            for size, line in self.alive.values():
                self.lines[line] += size
        weakref.finalize(storage, self.gone, key).atexit = False

    def gone(self, key):
        self.now -= self.alive.pop(key)[0]


def tool(name, output):
    if name == "tidemark":
        import tidemark

        return tidemark.record(output, force=True)
    if name == "memray":
        import memray

        pathlib.Path(output).unlink(missing_ok=True)
        return memray.Tracker(output)
    if name == "profiler":
        from torch.profiler import ProfilerActivity, profile

        return profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    return StorageSum() if name == "storages" else contextlib.nullcontext()


def seconds_since(times):
    return dict(zip(("wall", "processor"), (clock() - then for clock, then in zip(CLOCKS, times))))


def now():
    return [clock() for clock in CLOCKS]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--tool", choices=("tidemark", "memray", "profiler", "storages"))
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.manual_seed(0)
    before = now()
    with tool(args.tool, args.output) as used:
        took = {"start": seconds_since(before)}
        _, _, step = WORKLOADS[args.workload](torch.device(args.device))
        for _ in range(3):
            step()
        before = now()
        for _ in range(args.steps):
            step()
        took["steps"] = seconds_since(before)
        before = now()
    took["end"] = seconds_since(before)

    said = {}
    if args.tool == "profiler":
        before = now()
        used.export_chrome_trace(args.output)
        took["export"] = seconds_since(before)
        said["self_cpu_memory_usage"] = sum(row.self_cpu_memory_usage for row in used.key_averages())
    elif args.tool == "storages":
        said = {"peak": used.peak, "lines": used.lines}
    if args.device == "cuda":
        said["peak"] = torch.cuda.max_memory_allocated()
    print(json.dumps({"steps": args.steps, "took": took, "said": said}))


if __name__ == "__main__":
    main()
