#!/usr/bin/env python3
"""The cost of the host's samples: processor time of the recorder's threads while a program with forked workers holds
memory and does nothing. The thread that samples is the one that is not the main thread.

    bench/host_samplers.py --tidemark build/release/bin/tidemark --python python --workers 4 --seconds 60
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = """
import os, sys, torch
kept = torch.ones(64 << 20)  # 256 MiB
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        own = torch.ones(16 << 20)  # 64 MiB
        sys.stdin.read()
        os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""


def processor_ns(pid):
    """Of each thread, by its number."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(task.name): int((task / "schedstat").read_text().split()[0]) for task in tasks}


def measure(args, options):
    with tempfile.TemporaryDirectory() as folder:
        command = [args.tidemark, "run", "-q", "-o", f"{folder}/run.tide", *options]
        command += ["--", args.python, "-c", PROGRAM, str(args.workers)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(3)
        before, began = processor_ns(process.pid), time.monotonic()
        time.sleep(args.seconds)
        after, seconds = processor_ns(process.pid), time.monotonic() - began
        process.stdin.close()
        process.wait()
    spent = {task: (after[task] - before.get(task, 0)) / seconds / 1e6 for task in after}
    main = spent.pop(process.pid)
    print(f"{' '.join(options) or 'default'}: main thread {main:.2f} ms/s, sampler {sum(spent.values()):.2f} ms/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", default="tidemark")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--interval", action="append", default=[], help="--sample-interval of one more run")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    measure(args, [])
    for interval in args.interval:
        measure(args, ["--sample-interval", interval])


if __name__ == "__main__":
    main()
