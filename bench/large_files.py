#!/usr/bin/env python3
"""Time and memory of reading commands on large files.

    bench/large_files.py build/release/bin/tidemark lora_x10.pickle lora_x92.pickle [--rounds 3]

Prints for each file and command the median wall time and the peak of resident memory. bench/make_large_snapshot.py
makes such files.
"""
import argparse
import os
import statistics
import subprocess
import time

COMMANDS = ["summary", "table", "temporary", "patterns", "fragmentation", "leaks", "explain", "report", "export"]
OPTIONS = {"report": ["-o", "-"], "export": ["--to", "pytorch", "-o", "-"]}


def measure(command):
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    stderr = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: {stderr.decode()}")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidemark")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for path in options.files:
        print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")
        for name in COMMANDS:
            rounds = [measure([options.tidemark, name, path, *OPTIONS.get(name, [])]) for _ in range(options.rounds)]
            wall = statistics.median(seconds for seconds, _ in rounds)
            print(f"  {name:14} {wall:7.2f} s {max(memory for _, memory in rounds):8.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
