#!/usr/bin/env python3
"""Age of a monitor's values beside a program that makes events fast.

    bench/monitor_lag.py [--tidemark build/bench/bin/tidemark] [--paced build/bench/bin/paced_events]
                         [--events 500000] [--seconds 60] [--runs 3]

`paced_events` makes this many allocations and frees a second and keeps 1 GiB more with each second: the allocated bytes in the
exporter's page identify the moment of the value. The page is requested twice a second. Prints for each run the number of events (lower
than requested on a busy machine), the median and the greatest age, the lag reported by the exporter
(tidemark_recording_lag_seconds, none if it has read everything), and its processor time.
"""

import argparse
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

KEPT_EACH_SECOND = 1 << 30


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def values(page, name):
    return [float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name + "{")]


def processor_time(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(options, program, port, page_of):
    """The ages and lags, in seconds, while the program runs, and the processor time of the exporter `page_of`."""
    first = re.match(r"(\d+) bytes at ([\d.]+)", program.stdout.readline())
    base, began = int(first[1]), float(first[2])
    ages, lags, used = [], [], 0.0
    while program.poll() is None:
        time.sleep(0.5)
        try:
            page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        except OSError:
            continue
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        used = processor_time(page_of.pid)
        allocated = max(values(page, "tidemark_framework_memory_allocated_bytes"), default=None)
        if allocated is None or now - began > options.seconds:
            continue
        ages.append(now - began - (allocated - base) / KEPT_EACH_SECOND)
        lags.append(max(values(page, "tidemark_recording_lag_seconds"), default=0.0))
    return ages, lags, used


def run(options, folder):
    port = free_port()
    environment = os.environ | {"TIDEMARK_RUNTIME_DIR": folder}
    exporter = subprocess.Popen(
        [options.tidemark, "exporter", "--listen", f"127.0.0.1:{port}", "--interval", "0.5"],
        env=environment, stderr=subprocess.DEVNULL)
    program = subprocess.Popen(
        [options.tidemark, "run", "-f", "-o", f"{folder}/paced.tide", "--stacks", "none", "--",
         options.paced, str(options.events), str(options.seconds), str(KEPT_EACH_SECOND)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        ages, lags, used = watch(options, program, port, exporter)
        made = int(program.stdout.read().split()[0])
    finally:
        exporter.terminate()
        exporter.wait()
    if not ages:
        raise SystemExit("the exporter said nothing of the program while it ran")
    print(f"{made:,} events; age of what is allocated: median {statistics.median(ages):.2f} s, greatest {max(ages):.2f} s of"
          f" {len(ages)} times; lag of events that the exporter says: median {statistics.median(lags):.2f} s, greatest"
          f" {max(lags):.2f} s; its processor time: {used:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", default="build/bench/bin/tidemark")
    parser.add_argument("--paced", default="build/bench/bin/paced_events")
    parser.add_argument("--events", type=int, default=500_000, help="a second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            run(options, folder)


if __name__ == "__main__":
    main()
