#!/usr/bin/env python3
"""The cost of keeping only the last part, and that it does not grow: a program that allocates as fast as it can, recorded
with and without --keep. Prints events a second, the recorder's processor time an event, and its memory and the disk over time.

    bench/flight_recorder.py --tidemark build/release/bin/tidemark --python python --seconds 300 --keep 32MiB

With --rounds both take turns this often, and the medians of the recorder's processor time an event are printed at the end.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = """
import sys, time, torch
torch.set_num_threads(1)
new_stacks = sys.argv[2] == "new"
alive = [None] * 1000
make = lambda n: torch.empty(4096 + n % 997, dtype=torch.uint8)
end = time.monotonic() + float(sys.argv[1])
n = 0
while time.monotonic() < end:
    if new_stacks and n % 5000 == 0:
        exec(compile("def make(n): return torch.empty(4096 + n % 997, dtype=torch.uint8)", f"made{n}.py", "exec"))
    for _ in range(1000):
        alive[n % 1000] = make(n)
        n += 1
print(n, flush=True)
"""


def recorder_figures(pid):
    """(resident bytes, processor seconds) of a process."""
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return resident, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bytes_below(folder):
    total = 0
    for path in folder.rglob("*.tide"):
        try:
            total += path.stat().st_size
        except OSError:
            continue  # deleted meanwhile
    return total


def measure(args, keep):
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        options = ["--keep", keep, "--dump", "on-signal"] if keep else []
        command = [args.tidemark, "run", "-q", "-o", str(folder / "run.tide"), *options, "--", args.python, "-c", PROGRAM]
        began = time.monotonic()
        process = subprocess.Popen([*command, str(args.seconds), "new" if args.new_stacks else "same"], stdout=subprocess.PIPE)
        samples = []
        processor = 0
        while process.poll() is None:
            time.sleep(min(1, args.seconds / 20))
            try:
                resident, processor = recorder_figures(process.pid)
            except (OSError, IndexError):
                break
            samples.append((time.monotonic() - began, resident, bytes_below(folder)))
        allocations = int(process.stdout.read())
        process.wait()
    events = 2 * allocations - 1000
    cost = processor / events * 1e9
    what = f"--keep {keep}" if keep else "everything"
    print(f"{what}: {events / args.seconds / 1e6:.2f} M events/s, recorder {cost:.0f} ns an event", flush=True)
    rest = samples[len(samples) // 5 :]  # after it has filled up
    parts = [rest[len(rest) * n // 4 : len(rest) * (n + 1) // 4] for n in range(4)]
    for part in filter(None, parts):
        resident = [sample[1] / (1 << 20) for sample in part]
        disk = max(sample[2] for sample in part) / (1 << 20)
        memory = f"{statistics.median(resident):.1f} MiB resident (at most {max(resident):.1f})"
        print(f"  {part[0][0]:6.0f} to {part[-1][0]:6.0f} s: recorder {memory}, at most {disk:.1f} MiB on disk", flush=True)
    return cost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", default="tidemark")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--keep", default="32MiB")
    parser.add_argument("--folder", help="where recordings go for the time of the run")
    parser.add_argument("--new-stacks", action="store_true", help="the program makes new code all the time")
    parser.add_argument("--only", choices=("keep", "everything"))
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    kinds = {"everything": None, "keep": args.keep}
    if args.only:
        kinds = {args.only: kinds[args.only]}
    costs = {kind: [] for kind in kinds}
    for number in range(args.rounds):
        order = list(kinds) if number % 2 == 0 else reversed(kinds)
        for kind in order:
            costs[kind].append(measure(args, kinds[kind]))
    if args.rounds > 1:
        for kind, values in costs.items():
            print(f"{kind}: median {statistics.median(values):.0f} ns an event, {min(values):.0f} to {max(values):.0f}")
    if args.rounds > 1 and not args.only:
        ratios = [keep / everything for keep, everything in zip(costs["keep"], costs["everything"])]
        print(f"keep / everything of a round: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
