"""A program that repeatedly takes 1 GiB for 10 ms, recorded, and a monitor that samples its device once before.

Prints as JSON PyTorch's and the driver's values of the program, and the monitor's report on the device. "spikes.py program" is the program.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from watching import places, record

SPIKE = 1 << 30
PATIENCE_S = 600


def program():
    import torch

    held = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda"), torch.empty(8, device="cuda")]
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"used": total - free, "reserved": torch.cuda.memory_reserved()}), flush=True)
    sys.stdin.readline()
    while not select.select([sys.stdin], [], [], 0.13)[0]:
        block = torch.empty(SPIKE, dtype=torch.uint8, device="cuda")
        time.sleep(0.01)
        del block
        torch.cuda.empty_cache()
        held[1] = torch.empty(8, device="cuda")  # PyTorch reports its cache at the next use
    print(json.dumps({"peak_reserved": torch.cuda.memory_stats()["reserved_bytes.all.peak"]}), flush=True)


def wait_for(what, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)
    return value


def watch(folder):
    tidemark = os.environ["TIDEMARK"]
    recorded, said = record(folder, __file__)
    report, errors = Path(folder, "profile.json"), Path(folder, "stderr")
    with open(errors, "w") as stderr:
        monitor = subprocess.Popen(
            [tidemark, "profile", "--interval", "3600", "--duration", "3600", "--devices", "0", "--pid", str(recorded.pid), "--listen", "127.0.0.1:0", "-o", str(report)],
            env=places(folder), stdout=subprocess.DEVNULL, stderr=stderr,
        )  # fmt: skip
    url = wait_for("the address", lambda: re.search(r"metrics at (\S+)", errors.read_text()))[1]

    def metric(name):
        with urllib.request.urlopen(url) as page:
            found = re.search(rf"^{name}{{.*}} (\d+)", page.read().decode(), re.MULTILINE)
        return int(found[1]) if found else 0

    wait_for("a sample", lambda: metric("tidemark_gpu_memory_peak_bytes"))
    recorded.stdin.write("go\n")
    recorded.stdin.flush()
    wait_for("a spike", lambda: metric("tidemark_gpu_memory_peak_bytes") > said["used"] + SPIKE // 2)
    said |= json.loads(recorded.communicate("end\n")[0])
    monitor.send_signal(signal.SIGINT)
    assert monitor.wait(PATIENCE_S) == 0
    print(json.dumps(said | {"device": json.loads(report.read_text())["devices"]["0"]}), flush=True)


if sys.argv[1:]:
    program()
else:
    with tempfile.TemporaryDirectory() as folder:
        watch(folder)
