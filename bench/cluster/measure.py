#!/usr/bin/env python3
"""What a job's coordinator and its server cost: processor time, memory, and how old the states in the report are.

    bench/cluster/measure.py [--agents 1000] [--seconds 60] [--build build/bench]

Each simulated agent has 8 GPUs and 8 recorded ranks. Needs nats-server.
"""

import argparse
import atexit
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


def child_of(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--agents", type=int, default=1000)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--build", default="build/bench")
    options.add_argument("--port", type=int, default=29577)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report.json"
        command = [f"{options.build}/bin/tidemark", "distributed", "--role", "master", "--port", str(options.port)]
        command += ["--bind", "127.0.0.1", "--state", folder, "--job", "default", "--output", report]
        with Path(folder, "out").open("w") as out:
            master = subprocess.Popen(command, stdout=out)
        atexit.register(master.kill)  # whatever fails
        time.sleep(2)
        server = child_of(master.pid)
        simulate = next(Path(options.build).rglob("cluster_simulate"))
        words = [str(simulate), f"127.0.0.1:{options.port}", f"{folder}/key", str(options.agents), str(options.seconds)]
        agents = subprocess.Popen(words)
        time.sleep(5)  # until all nodes are known
        began = time.monotonic()
        before = {pid: processor_seconds(pid) for pid in (master.pid, server)}
        time.sleep(max(1, options.seconds - 8))
        seconds = time.monotonic() - began
        for name, pid in (("coordinator", master.pid), ("nats-server", server)):
            share = (processor_seconds(pid) - before[pid]) / seconds
            print(f"{name}: {share:.1%} of a core, at most {peak_mib(pid):.0f} MiB")
        master.send_signal(signal.SIGINT)
        asked = time.monotonic()
        master.wait()
        print(f"report: {time.monotonic() - asked:.2f} s")
        agents.wait()
        job = json.loads(Path(report).read_text())
        simulated = [node for node in job["nodes"] if node["node"].startswith("node")]
        ages = sorted(node["age_seconds"] for node in simulated)
        lost = sum(node["lost_message_count"] + node["refused_message_count"] for node in simulated)
        print(
            f"{len(simulated)} nodes, {len(job['ranks'])} ranks; oldest state {ages[-1]:.2f} s, "
            f"median {ages[len(ages) // 2]:.2f} s; {lost} messages lost or refused"
        )


if __name__ == "__main__":
    main()
