"""Instructions that recording adds to each event, counted by Valgrind's callgrind: a figure that other programs do not affect.

    cmake --preset bench && cmake --build --preset bench --target tidemark tidemark_preload
    python3 bench/instructions.py build/bench/bin/tidemark [--python PYTHON] [--workload dense] [--steps 100]

In one process the same number of steps is counted plain (recording paused) and recorded, with Python stacks and attribution, with stacks alone, and
without either; the difference between two rows is the cost of one part. Below each row: instructions of our own code by the folder of its
source, and those of others (the interpreter, libc) that our code calls.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROWS = {
    "Python stacks and attribution": ["--stacks", "python"],
    "Python stacks": ["--stacks", "python", "--attribute", "off"],
    "neither": ["--stacks", "none", "--attribute", "off"],
}
SOURCES = re.compile(r".*/src/(.*)/[^/]*$")
WARM_STEPS = 20  # recorded, so that one-time work for each stack or module is not counted


def callgrind(*what):
    subprocess.run(["callgrind_control", *what, str(os.getpid())], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run_steps(workload, steps):
    """Runs in the counted program."""
    import ctypes

    import torch
    from workloads import WORKLOADS

    library = ctypes.CDLL(None)
    torch.manual_seed(0)
    _, _, step = WORKLOADS[workload](torch.device("cpu"))
    for _ in range(WARM_STEPS):
        step()
    library.tidemark_pause()
    step()
    callgrind("-i", "on")
    for phase, change in (("plain", None), ("recorded", library.tidemark_resume)):
        if change:
            change()
        callgrind("-z")
        for _ in range(steps):
            step()
        callgrind("-d", phase)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")


class Costs:
    """Instructions of one dump by the folder of the source; "" if it is not ours."""

    def __init__(self, path):
        self.total = 0
        self.by_folder = collections.Counter()
        names = {}
        folder = ""
        after_call = False
        for line in path.read_text().splitlines():
            named = re.match(r"(fl|fi|fe|cfi|cfl)=(\(\d+\))(?: (.*))?$", line)
            if named:
                of, number, name = named.groups()
                if name:
                    names[number] = name
                if not of.startswith("c"):  # the file of a called function is only named here
                    found = SOURCES.match(names[number])
                    folder = found[1] if found else ""
            elif line.startswith("calls="):
                after_call = True
            elif re.match(r"[+*\d-]", line):
                if not after_call:  # the line after a call is the called function's
                    cost = int(line.split()[1])
                    self.by_folder[folder] += cost
                    self.total += cost
                after_call = False


def count(tidemark, python, workload, steps, options, folder):
    recording = folder / "counted.tide"
    out = folder / "callgrind.out"
    for old in folder.glob("callgrind.out*"):
        old.unlink()
    command = [tidemark, "run", "-q", "-f", "-o", recording, *options, "--", "valgrind", "--tool=callgrind", "--instr-atstart=no",
               f"--callgrind-out-file={out}", "--smc-check=all-non-file", python, __file__, "--counted", "--workload", workload,
               "--steps", str(steps)]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    summary = json.loads(subprocess.run([tidemark, "summary", "--format", "json", recording], check=True, capture_output=True).stdout)
    events = summary["event_count"] * steps / (WARM_STEPS + steps)
    dumps = {}
    for path in folder.glob("callgrind.out.*"):
        phase = re.search(r"desc: Trigger: .*?(plain|recorded)", path.read_text())
        if phase:
            dumps[phase[1]] = Costs(path)
    return done.stdout.strip(), events, dumps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidemark", nargs="?")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--workload", default="dense")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--counted", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.counted:
        run_steps(args.workload, args.steps)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, options in ROWS.items():
            versions, events, dumps = count(args.tidemark, args.python, args.workload, args.steps, options, pathlib.Path(folder))
            plain, recorded = dumps["plain"], dumps["recorded"]
            added = recorded.total - plain.total
            print(f"{name}: {added / events:.0f} instructions an event, {1 + added / plain.total:.3f}x plain "
                  f"({plain.total / events:.0f} an event; {versions}, {args.workload}, {events / args.steps:.0f} events a step)")
            ours = 0
            for source, cost in recorded.by_folder.most_common():
                extra = cost - plain.by_folder[source]
                if source and extra / events >= 0.5:
                    print(f"  {extra / events:7.1f}  {source}")
                    ours += extra
            print(f"  {(added - ours) / events:7.1f}  others")


if __name__ == "__main__":
    main()
