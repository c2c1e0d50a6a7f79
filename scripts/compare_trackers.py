#!/usr/bin/env python3
"""Memory by owner at the peak, from Tidemark, PyTorch's MemTracker and its profiler's memory timeline, for the same programs.

Each program of bench/overhead.py is trained for four steps in a separate process for each tool; the tool's result is printed with
torch.cuda.max_memory_allocated() of that process. For the time of a training step with each: bench/overhead.py --trackers.

    scripts/compare_trackers.py [--tidemark build/release/bin/tidemark] [--workloads hf-lora,hf-llama,resnet50] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("MemTracker", "profiler", "tidemark")
STEPS = 4
# Categories of the profiler's timeline, in the order of its columns (torch/profiler/_memory_profiler.py).
TIMELINE = ("parameter", "optimizer state", "input", "temporary", "activation", "gradient", "autograd detail", "no category")


def tensors_of(model, optimizer):
    """Bytes of the tensors themselves, by category."""
    states = [value for state in optimizer.state.values() for value in state.values() if value.is_cuda]
    kinds = {"parameter": model.parameters(), "buffer": model.buffers(), "optimizer state": states}
    return {kind: sum(tensor.untyped_storage().nbytes() for tensor in held) for kind, held in kinds.items()}


def at_peak_of_timeline(profiler, folder):
    """(categories, seconds for exporting them)"""
    began = time.perf_counter()
    path = f"{folder}/timeline.json"
    profiler.export_memory_timeline(path, device="cuda:0")
    _, sizes = json.loads(Path(path).read_text())
    return dict(zip(TIMELINE, max((row[1:] for row in sizes), key=sum))), time.perf_counter() - began


def train(tool, workload):
    """Runs in the process of one tool, and prints JSON."""
    sys.path.insert(0, str(ROOT / "bench"))
    import torch
    from trackers import memory_profiler, memory_tracker
    from workloads import WORKLOADS

    torch.manual_seed(0)
    model, optimizer, step = WORKLOADS[workload](torch.device("cuda"))
    said = {}
    if tool == "MemTracker":
        with memory_tracker(model, optimizer) as tracker:
            for _ in range(STEPS):
                step()
                tracker.reset_mod_stats()
        peak = next(held for device, held in tracker.get_tracker_snapshot("peak").items() if device.type == "cuda")
        said["categories"] = {str(getattr(kind, "value", kind)): held for kind, held in peak.items() if kind != "Total"}
    elif tool == "profiler":
        step()
        torch.cuda.reset_peak_memory_stats()
        with memory_profiler() as profiler:
            for _ in range(STEPS - 1):
                step()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            said["categories"], said["export_seconds"] = at_peak_of_timeline(profiler, folder)
    else:
        for _ in range(STEPS):
            step()
    said["max_memory_allocated"] = torch.cuda.max_memory_allocated()
    said["tensors"] = tensors_of(model, optimizer)
    print(json.dumps(said))


def run(tidemark, tool, workload, folder):
    command = [sys.executable, __file__, "--train", tool, workload]
    recording = folder / "run.tide"
    if tool == "tidemark":
        command = [tidemark, "run", "-q", "-f", "-o", recording, "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1]}
    said = json.loads(done.stdout.splitlines()[-1])
    if tool == "tidemark":
        began = time.perf_counter()
        breakdown = subprocess.run([tidemark, "breakdown", "--format", "json", recording], stdout=subprocess.PIPE, text=True, check=True).stdout
        device = next(device for device in json.loads(breakdown)["devices"] if device["device"] == "cuda:0")
        said["categories"] = {part["category"].replace("_", " "): part["bytes"] for part in device["categories"]}
        said["export_seconds"] = time.perf_counter() - began
    return said


def main():
    if sys.argv[1:2] == ["--train"]:
        return train(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", default=ROOT / "build/release/bin/tidemark", type=Path)
    parser.add_argument("--workloads", default="hf-lora,hf-llama,resnet50", metavar="NAMES")
    parser.add_argument("--json", metavar="FILE", type=Path)
    args = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for workload in args.workloads.split(","):
            for tool in TOOLS:
                said = found[f"{workload}, {tool}"] = run(args.tidemark.resolve(), tool, workload, Path(folder))
                if "error" in said:
                    print(f"{workload}, {tool}: {said['error']}")
                    continue
                total, most = sum(said["categories"].values()), said["max_memory_allocated"]
                print(f"{workload}, {tool}: {total:,} in all, {most:,} by max_memory_allocated ({total - most:+,})")
                for kind, held in sorted(said["categories"].items(), key=lambda part: -part[1]):
                    if held:
                        print(f"  {kind:20} {held:>16,}")
            print("  by the tensors:", ", ".join(f"{kind} {held:,}" for kind, held in said["tensors"].items()), flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
