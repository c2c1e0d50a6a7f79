#!/usr/bin/env python3
"""Compares plans with a real GPU: PyTorch's counters, and every block returned by its allocator, in order.

Runs the configurations of DATA/runs_h200.json (recorded on one H200 with torch 2.11.0, transformers 5.17.0, torchvision 0.26.0) with
`tidemark plan --gpu H200` and an interpreter that has these versions: `scripts/setup.sh --torch-truth` installs them. Prints a line for
each configuration and, at the end, how many are exact. Exit code 1 if a configuration could not be planned, or, with --exact, is not
exact.

    scripts/plan_accuracy.py                              all 48, some 8 minutes on two cores
    scripts/plan_accuracy.py --only 0-5,36 --tidemark build/release/bin/tidemark
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("TIDEMARK_CACHE", Path.home() / ".cache" / "tidemark"))
FIGURES = ("peak_allocated", "peak_reserved", "alloc_count", "segments")


def indexes(text, count):
    """Numbers of "0-5,36"; without a text, all of `count`."""
    found = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found or list(range(count))


def recorded_events(tidemark, recording):
    """(size, total reserved) of each allocated block, and (-size, ...) of each freed one."""
    dump = subprocess.Popen([tidemark, "dump", "--format", "json", recording], stdout=subprocess.PIPE, text=True)
    for line in dump.stdout:
        event = json.loads(line).get("event")
        if event and event.get("device") == "cuda:0" and event["kind"] in ("allocate", "free"):
            yield (event["size"] if event["kind"] == "allocate" else -event["size"]), event["total_reserved"]
    dump.wait()


def true_events(path):
    for line in lzma.open(path, "rt"):
        size, reserved = line.split()
        yield int(size), int(reserved)


def plan(args, folder, index):
    """(counters that the planned program printed, path of its recording)"""
    recording = folder / f"{index}.tide"
    program = [args.python, "runs_h200.py", "runs_h200.json", str(index)]
    command = [args.tidemark, "plan", "--gpu", "H200", "--steps", "0", "-f", "-o", recording, "--format", "json", "--", *program]
    done = subprocess.run(command, cwd=args.data, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("ONE ")]
    if done.returncode != 0 or not said:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(said[0].removeprefix("ONE ")), recording


def compare(args, folder, index, run):
    counted, recording = plan(args, folder, index)
    measured = run["measured"]
    same = list(recorded_events(args.tidemark, recording)) == list(true_events(args.data / run["events"]))
    recording.unlink()
    return {name: counted[name] / measured[name] - 1 for name in FIGURES}, same


def describe(run):
    words = [run["name"], run["opt"], run["dtype"], f"batch {run['batch']}"]
    words += [f"length {run['seq']}"] if run.get("seq") else [f"image {run['image']}"]
    words += [f"LoRA {run['lora']}"] if run["lora"] else []
    words += [word for word in ("autocast", "checkpointing") if run["autocast" if word == "autocast" else "ckpt"]]
    return ", ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", default=ROOT / "build/release/bin/tidemark", type=Path)
    parser.add_argument("--python", default=CACHE / "torch-2.11.0/bin/python", type=Path)
    parser.add_argument("--data", default=ROOT / "../shared/data", type=Path)
    parser.add_argument("--only", default="", metavar="NUMBERS", help="such as 0-5,36")
    parser.add_argument("--exact", action="store_true", help="fail when a figure or a sequence differs")
    args = parser.parse_args()
    args.tidemark, args.data = args.tidemark.absolute(), args.data.resolve()
    runs = json.loads((args.data / "runs_h200.json").read_text())
    chosen = indexes(args.only, len(runs))
    exact = dict.fromkeys((*FIGURES, "sequence"), 0)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tidemark-accuracy-") as folder:
        for index in chosen:
            try:
                differences, same = compare(args, Path(folder), index, runs[index])
            except RuntimeError as error:
                failed += 1
                print(f"{index:2}  could not be planned: {error}  ({describe(runs[index])})", flush=True)
                continue
            for name, difference in differences.items():
                exact[name] += difference == 0
            exact["sequence"] += same
            figures = "  ".join(f"{name} {'exact' if d == 0 else f'{d:+.3%}'}" for name, d in differences.items())
            print(f"{index:2}  {figures}  sequence {'exact' if same else 'differs'}  ({describe(runs[index])})", flush=True)
    print(f"exact of {len(chosen)}: " + ", ".join(f"{name} {count}" for name, count in exact.items()))
    differs = args.exact and min(exact.values()) < len(chosen)
    return 1 if failed or differs else 0


if __name__ == "__main__":
    sys.exit(main())
