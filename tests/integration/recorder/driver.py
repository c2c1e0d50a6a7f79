"""Shared by the drivers beside this file: running a program plain or recorded, and reading its recording.

TIDEMARK is the program under test, TIDEMARK_PYTHON the interpreter with the recorded PyTorch. If TIDEMARK_STAND_IN is
the folder of tests/stand_in, programs of Case import that instead of PyTorch, which takes a second to start; those of tests with
@real_pytorch do not. A driver, test_*.py, needs only the standard library.
"""

import functools
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

TIDEMARK = os.environ["TIDEMARK"]
PYTHON = os.environ["TIDEMARK_PYTHON"]
PROGRAMS = Path(__file__).resolve().parent
ALLOCATE = [PYTHON, "-c", "import torch; print(torch.ones(10).sum().item())"]  # the smallest program with a tensor
STAND_IN = os.environ.get("TIDEMARK_STAND_IN", "")
# How long an action may take before a test gives up: on a busy machine, half a minute becomes minutes.
PATIENCE_S = int(os.environ.get("TIDEMARK_TEST_PATIENCE", 900))

# Times and process ids in messages of libraries on stderr.
VARIES = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+")

# A background job of a shell starts with SIGINT ignored, and so would the programs.
signal.signal(signal.SIGINT, signal.default_int_handler)


def program(name, *arguments):
    """The command line of one of the programs in this folder."""
    return [PYTHON, str(PROGRAMS / name), *map(str, arguments)]


_stands_in = False  # in the current test


def real_pytorch(test):
    """A test whose programs need PyTorch itself, or the one of its subject that always runs with it."""
    test.real_pytorch = True
    return test


def environment(**variables):
    inherited = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if _stands_in:
        inherited["PYTHONPATH"] = STAND_IN
    return {**inherited, "OMP_NUM_THREADS": "1", **variables}


def run(command, **options):
    """Runs to the end. A CompletedProcess with bytes in stdout and stderr."""
    options.setdefault("env", environment())
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False, **options)


def has_cuda():
    """Whether PyTorch is built for CUDA. It is not imported, which takes seconds."""
    found = run([PYTHON, "-c", "import importlib.util; print(importlib.util.find_spec('torch').origin)"])
    return Path(found.stdout.decode().strip()).with_name("lib").joinpath("libtorch_cuda.so").exists()


def memory_group(limit):
    """A new control group with a limit of host memory, below this process's own; None if none can be made."""
    lines = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    version_1 = "memory" in lines
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    kind = "cgroup" if version_1 else "cgroup2"
    tops = [Path(mount[1]) for mount in mounts if mount[2] == kind and (not version_1 or "memory" in mount[3].split(","))]
    own = [path for top in tops for path in (top / lines["memory" if version_1 else ""].lstrip("/"), top) if path.is_dir()]
    if not own:
        return None
    group = own[0] / f"tidemark-test-{os.getpid()}"
    limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") if version_1 else ("memory.max", "memory.swap.max")
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        for name in limits:
            if name == limits[0] or (group / name).exists():
                (group / name).write_text("0" if name == "memory.swap.max" else str(limit))
    except OSError:
        group.rmdir()
        return None
    return group


def start(command, **options):
    """Starts with pipes for stdout and stderr, without Python's buffering."""
    options.setdefault("env", environment())
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **options)


def wait_for(condition, what):
    """The result of `condition` once it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.002)
    return value


def read_until(stream, wanted, read=b""):
    """Reads until `wanted` has arrived; returns everything read."""
    deadline = time.monotonic() + PATIENCE_S
    while wanted not in read:
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(stream.fileno(), 65536) if ready else b""
        if not chunk:
            raise AssertionError(f"{wanted!r} did not come, only {read!r}")
        read += chunk
    return read


def children(pid):
    """The direct children of a process, without tidemark's own (src/launch/group_witness.h)."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    pids = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [child for child in pids if Path(f"/proc/{child}/comm").read_text() != "signal-witness\n"]


def split_stderr(stderr):
    """(the program's output, tidemark's lines)"""
    lines = stderr.splitlines(keepends=True)
    ours = [line.decode() for line in lines if line.startswith(b"tidemark: ")]
    return b"".join(line for line in lines if not line.startswith(b"tidemark: ")), ours


@functools.lru_cache
def _recorded(case, command, options, _stands_in):
    folder = tempfile.TemporaryDirectory(prefix="tidemark-programs-")
    case.addClassCleanup(folder.cleanup)
    done = run([TIDEMARK, "run", "-o", f"{folder.name}/run.tide", *options, "--", *command])
    assert done.returncode == 0, done.stderr.decode()
    return Path(folder.name)


class Case(unittest.TestCase):
    """A test case with a folder of its own, which is empty before each test."""

    def setUp(self):
        global _stands_in
        test = getattr(self, self._testMethodName)
        _stands_in = STAND_IN != "" and not hasattr(test, "real_pytorch")
        folder = tempfile.TemporaryDirectory(prefix="tidemark-programs-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "run.tide"

    def record_command(self, command, *options):
        return [TIDEMARK, "run", "-o", str(self.output), *options, "--", *command]

    def record(self, command, *options, **how):
        return run(self.record_command(command, *options), **how)

    def record_well(self, command, *options, **how):
        """Records a program that must end with exit code 0."""
        done = self.record(command, *options, **how)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done

    def record_once(self, command, *options):
        """As record_well(), but once for all tests of the class, which read the same recording."""
        self.folder = _recorded(type(self), tuple(command), options, _stands_in)
        self.output = self.folder / "run.tide"

    def recordings(self):
        return sorted(path.name for path in self.folder.glob("*.tide"))

    def read(self, *arguments):
        """stdout of a reading command, which must succeed and say nothing on stderr but which file it wrote."""
        done = run([TIDEMARK, *map(str, arguments)])
        said = [line for line in done.stderr.splitlines() if "-o" not in arguments or not line.startswith(b"tidemark: wrote ")]
        self.assertEqual((done.returncode, said), (0, []), arguments)
        return done.stdout

    def summary(self, name="run.tide"):
        return json.loads(self.read("summary", "--format", "json", self.folder / name))

    def device(self, name="run.tide", device="cpu"):
        """The part of the summary about one device."""
        (found,) = [part for part in self.summary(name)["devices"] if part["device"] == device]
        return found

    def dump(self, name="run.tide"):
        """The records of a file, as (kind, fields)."""
        lines = self.read("dump", "--format", "json", self.folder / name).splitlines()
        return [next(iter(json.loads(line).items())) for line in lines]

    def events(self, name="run.tide"):
        return [fields for kind, fields in self.dump(name) if kind == "event"]

    def sizes(self, name="run.tide"):
        """Sizes of all allocations in the order of the recording."""
        return [event["size"] for event in self.events(name) if event["kind"] == "allocate"]

    def stacks(self, name="run.tide"):
        """Of all allocations, in order: lists of (function, file, line), outermost first; None for an allocation without.

        A native frame is (None, the path of its library, None).
        """
        tables = {kind: {} for kind in ("string", "module", "location", "stack")}
        found = []
        for kind, fields in self.dump(name):
            if kind in tables:
                tables[kind][fields["id"]] = fields
            elif kind == "event" and fields["kind"] == "allocate":
                found.append(self.frames(tables, fields["stack"]))
        return found

    @staticmethod
    def frames(tables, stack):
        text = {number: fields["text"] for number, fields in tables["string"].items()}
        frames = []
        while stack is not None:
            location = tables["location"][tables["stack"][stack]["location"]]
            if location["kind"] == "python":
                frames.insert(0, (text[location["function"]], text[location["file"]], location["line"]))
            else:
                frames.insert(0, (None, text[tables["module"][location["module"]]["path"]], None))
            stack = tables["stack"][stack]["parent"]
        return frames or None

    def issue_ids(self, name="run.tide"):
        return {issue["id"] for issue in self.summary(name)["data_quality"]["issues"]}

    def kill_at_end(self, process):
        """Makes sure that a started process and its children do not outlive the test."""

        def kill():
            for pid in [*children(process.pid), process.pid] if process.poll() is None else []:
                os.kill(pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(kill)
        return process
