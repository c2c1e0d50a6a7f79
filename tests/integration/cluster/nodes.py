"""Machines of a job with simulated GPUs: each in a network namespace of its own if that is permitted, else all on loopback."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GIB = 1 << 30
MARK = "TIDEMARK_TEST_NETWORK"


def enter_namespace():
    """Executes this program again in new network and user namespaces, in which it may make more of them."""
    if MARK in os.environ:
        return
    for words in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        probe = [*words, "sh", "-c", "ip link add probe type bridge"]
        try:
            permitted = subprocess.run(probe, capture_output=True).returncode == 0
        except FileNotFoundError:
            permitted = False
        if permitted:
            os.execvpe(words[0], [*words, sys.executable, "-B", *sys.argv], {**os.environ, MARK: "own"})
    os.environ[MARK] = "loopback"


def has_namespaces():
    return os.environ[MARK] == "own"


def ip(*words, inside=None):
    prefix = ["nsenter", "-t", str(inside), "-n"] if inside else []
    subprocess.run([*prefix, "ip", *words], check=True)


def wait_for(what, condition, patience=60):
    """The result of `condition` once it is true."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {patience} s for {what}"
        time.sleep(0.05)
    return value


class Network:
    """A bridge with a cable to each node."""

    def __init__(self):
        if not has_namespaces():
            return
        ip("link", "set", "lo", "up")
        ip("link", "add", "br0", "type", "bridge")
        ip("link", "set", "br0", "up")

    def close(self):
        if has_namespaces():
            ip("link", "del", "br0")


class Node:
    """A machine of the job: GPUs of 80 GiB with one rank each."""

    count = 0

    def __init__(self, name, ranks):
        """`ranks`: the rank on each GPU, with the GiB that it uses."""
        Node.count += 1
        self.name = name
        # All nodes share the processes of this machine. Agents count those with their own number of a job.
        self.job = f"cluster-test-{os.getpid()}-{name}"
        self.number = Node.count
        self.folder = tempfile.TemporaryDirectory()
        self.at = Path(self.folder.name)
        self.processes = []
        self.address = "127.0.0.1"
        self.holder = None
        if has_namespaces():
            self.connect()
        self.devices = []
        for place, (rank, gib) in enumerate(ranks.items()):
            program = self.start_rank(RANK=str(rank), LOCAL_RANK=str(place), WORLD_SIZE="5", TORCHELASTIC_RUN_ID=self.job)
            self.devices.append(
                {
                    "name": "NVIDIA H100 80GB HBM3",
                    "uuid": f"GPU-{self.number}-{place}",
                    "bus": place + 1,
                    "memory": {"total": 80 * GIB, "used": int(gib * GIB)},
                    "processes": [{"pid": program.pid, "bytes": int(gib * GIB), "ends": True}],
                }
            )
        self.write_devices()

    def write_devices(self):
        (self.at / "nvml.json").write_text(json.dumps({"driver": "580.1", "devices": self.devices}))

    def start_rank(self, **variables):
        program = subprocess.Popen(["sleep", "1000"], env={**os.environ, **variables})
        self.processes.append(program)
        return program

    def end_rank(self, place):
        """Kills the rank on this GPU."""
        self.processes[place].kill()
        self.processes[place].wait()

    def record(self, rank, path):
        """A rank with a flight recorder, which allocates now and then."""
        program = "import torch, time\nwhile True:\n    torch.ones(1000)\n    time.sleep(0.05)"
        return self.run(
            "run", "--keep", "10min", "--dump", "on-signal", "-o", str(path), "--", sys.executable, "-c", program,
            RANK=str(rank), PYTHONPATH=os.environ["TIDEMARK_STAND_IN"],
        )  # fmt: skip

    def add_stranger(self):
        """A rank of another job on the first GPU."""
        program = self.start_rank(RANK="0", TORCHELASTIC_RUN_ID="another-job")
        self.devices[0]["processes"].append({"pid": program.pid, "bytes": GIB})
        self.write_devices()

    def connect(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
        own = Path("/proc/self/ns/net").readlink()
        wait_for("the namespace", lambda: Path(f"/proc/{self.holder.pid}/ns/net").readlink() != own)
        self.cable = f"cable{self.number}"
        self.address = f"10.77.0.{self.number}"
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        ip("link", "set", self.cable, "master", "br0", "up")
        ip("addr", "add", f"{self.address}/24", "dev", "eth0", inside=self.holder.pid)
        ip("link", "set", "eth0", "up", inside=self.holder.pid)
        ip("link", "set", "lo", "up", inside=self.holder.pid)

    def cut(self):
        """No packet comes in or out; neither side is told."""
        ip("link", "set", self.cable, "down")

    def mend(self):
        ip("link", "set", self.cable, "up")

    def start(self, *arguments, **variables):
        """`tidemark distributed` on this node."""
        return self.run("distributed", "--node", self.name, *arguments, **variables)

    def run(self, *arguments, **variables):
        """tidemark on this node; its output goes into files, named in the process."""
        environment = {
            **os.environ, "TIDEMARK_RUNTIME_DIR": self.folder.name, "FAKES_NVML": str(self.at / "nvml.json"),
            "LD_LIBRARY_PATH": os.environ["FAKES_NVML_FOLDER"], "HOME": self.folder.name, "TORCHELASTIC_RUN_ID": self.job,
            **variables,
        }  # fmt: skip
        command = [os.environ["TIDEMARK"], *arguments]
        if self.holder:
            command = [shutil.which("nsenter"), "-t", str(self.holder.pid), "-n", *command]
        number = len(self.processes)
        out, errors = self.at / f"out{number}", self.at / f"errors{number}"
        with out.open("w") as stdout, errors.open("w") as stderr:
            process = subprocess.Popen(command, env=environment, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL)
        process.out, process.errors = out, errors
        self.processes.append(process)
        return process

    def close(self):
        for process in [*self.processes, *([self.holder] if self.holder else [])]:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.folder.cleanup()


def events_in(process):
    """The events that the master showed, in order: ["rank 3 (node b): ended", ...]."""
    return re.findall(r" UTC (rank \S+ \(node \S+\): (?:ended|started|dumped).*)", process.out.read_text())


def changes_in(process):
    """What the master said of its nodes, in order: [("joined", "b"), ...]."""
    words = re.compile(r" UTC node (\S+) (joined|is not heard any more|is heard again|left)")
    return [(found[2], found[1]) for found in words.finditer(process.out.read_text())]


def server_of(process):
    """The PID of the NATS server that a coordinator has started; None: it has none now."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            name = (entry / "comm").read_text().strip()
        except OSError:
            continue
        if name == "nats-server" and int(fields[1]) == process.pid and fields[0] != "Z":
            return int(entry.name)
    return None
