"""A program whose batches have many lengths, recorded, and `tidemark fragment` watching it.

Prints as JSON PyTorch's values of the program, the monitor's report, and the result of its advice in the allocator's model. "lengths.py program" is
the program.
"""

import json
import os
import random
import select
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path

from watching import places, record

MIB = 1 << 20


def program():
    import torch

    lengths = random.Random(0)
    kept = deque(maxlen=48)

    def batch():
        scores = torch.empty(lengths.randint(16, 256), MIB, dtype=torch.uint8, device="cuda")
        kept.append(scores[: lengths.randint(2, 8)].clone())

    for _ in range(300):
        batch()
    print(json.dumps({"reserved": torch.cuda.memory_reserved()}), flush=True)
    while not select.select([sys.stdin], [], [], 0.005)[0]:
        batch()
    print(
        json.dumps({"last_reserved": torch.cuda.memory_reserved(), "peak_allocated": torch.cuda.max_memory_allocated()}),
        flush=True,
    )


def watch(folder):
    tidemark = os.environ["TIDEMARK"]
    recorded, said = record(folder, __file__)
    report = Path(folder, "fragment.json")
    monitor = subprocess.run(
        [tidemark, "fragment", "--interval", "0.2", "--duration", "6", "--pid", str(recorded.pid), "-o", str(report)],
        env=places(folder), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    said |= json.loads(recorded.communicate("end\n")[0])
    (row,) = json.loads(report.read_text())["recorded"]
    (found,) = (device for device in row["fragmentation"]["devices"] if device["device"] == "cuda:0")
    replay = subprocess.run(
        [tidemark, "simulate", f"{folder}/run.tide", "--set", found["advice"][0]["settings"], "--allocator", "model", "--format", "json"],
        check=True, stdout=subprocess.PIPE, env=places(folder),
    )  # fmt: skip
    found.pop("over_time")
    said |= {"recorded": row["devices"]["cuda:0"], "device": found, "simulation": json.loads(replay.stdout)}
    print(json.dumps(said | {"text": monitor.stdout}), flush=True)


if sys.argv[1:]:
    program()
else:
    with tempfile.TemporaryDirectory() as at:
        watch(at)
