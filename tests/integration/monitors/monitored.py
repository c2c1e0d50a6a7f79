"""A machine with two simulated GPUs, one of which fills up, and a monitor that watches it."""

import json
import os
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path

GIB = 1 << 30
DEVICES = [
    {"name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-1111", "bus": 1, "utilization": 37, "temperature": 41, "power": 71500,
     "memory": {"total": 80 * GIB, "reserved": GIB, "used": 2 * GIB}},
    {"name": 'Odd "name" \\ \n', "uuid": "GPU-2222", "bus": 2, "utilization": 0, "temperature": 30, "power": 60000,
     "memory": {"total": 80 * GIB, "used": 5 * GIB}},
]  # fmt: skip


class Machine:
    """A process that takes more and more of GPU 0 after grow() is called."""

    def __init__(self, **facts):
        """`facts`: of GPU 0, as in fakes/nvml.cpp."""
        self.folder = tempfile.TemporaryDirectory()
        self.at = Path(self.folder.name)
        # Other recorders on this machine are not found from there.
        self.places = {"TIDEMARK_RUNTIME_DIR": self.folder.name}
        self.log = self.at / "driver.log"
        self.log.touch()
        devices = [dict(device) for device in DEVICES]
        devices[0].update(driver_log=str(self.log), **facts)
        (self.at / "nvml.json").write_text(json.dumps({"driver": "580.1", "devices": devices}))
        self.program = subprocess.Popen(["sleep", "1000"])
        self.monitors = []
        self.recorded = None
        self.stopped = threading.Event()
        self.growing = None

    def grow(self, gib_a_step, seconds_a_step=0.05, up_to=70):
        def run():
            taken = 0
            while taken < up_to and not self.stopped.wait(seconds_a_step):
                taken += gib_a_step
                line = {"pid": self.program.pid, "account": "cuda-driver:0", "change": int(gib_a_step * GIB)}
                with open(self.log, "a") as log:
                    log.write(json.dumps(line) + "\n")

        self.growing = threading.Thread(target=run)
        self.growing.start()

    def record(self):
        """Starts a training under `tidemark run`; returns its own values of its tensors (programs/watched.py)."""
        program = Path(__file__).resolve().parents[1] / "recorder" / "watched.py"
        command = [
            os.environ["TIDEMARK"],
            "run",
            "-q",
            "-o",
            f"{self.at}/run.tide",
            "--",
            os.environ["TIDEMARK_PYTHON"],
            str(program),
        ]
        self.recorded = subprocess.Popen(
            command, env={**os.environ, **self.places}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return json.loads(self.recorded.stdout.readline())

    def watch(self, *arguments, **variables):
        """Starts a command of tidemark with these variables in its environment; stderr goes into a file."""
        environment = {
            **os.environ, **self.places, "FAKES_NVML": str(self.at / "nvml.json"), "LD_LIBRARY_PATH": os.environ["FAKES_NVML_FOLDER"],
            **variables,
        }  # fmt: skip
        errors = self.at / f"stderr{len(self.monitors)}"
        with open(errors, "w") as stderr:
            monitor = subprocess.Popen([os.environ["TIDEMARK"], *arguments], env=environment, stderr=stderr)
        monitor.errors = errors
        self.monitors.append(monitor)
        return monitor

    def close(self):
        self.stopped.set()
        if self.growing:
            self.growing.join()
        if self.recorded:
            self.recorded.communicate()
        for process in [*self.monitors, self.program]:
            if process.poll() is None:
                process.terminate()
            process.wait()
        self.folder.cleanup()


def wait_for(what, condition, patience=120):
    """The result of `condition` once it is true; fails if it does not become so for minutes."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {patience} s for {what}"
        time.sleep(0.05)
    return value


def url_of(monitor):
    """The address of the monitor's metrics, from its output."""

    def said():
        assert monitor.poll() is None, monitor.errors.read_text()
        return re.search(r"metrics at (\S+)", monitor.errors.read_text())

    return wait_for("the address", said)[1]
