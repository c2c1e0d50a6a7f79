"""Recordings from inside: ends of processes, other recorders, other versions of Python and PyTorch, a GPU."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpu_programs import GPU_PYTHON, needs_gpu, on_gpu
from recordings import MIB, cpu, issues, read, script

import tidemark
from tidemark._program import find_program

BEGINNING = """
import os, sys, signal, tidemark
recording = tidemark.start(sys.argv[1], samples=False)
import torch
kept = torch.empty(3 << 20, dtype=torch.uint8)
"""
WITHOUT_TORCH = """
import sys, timeit, tidemark
assert not tidemark.is_recording()
tidemark.mark("unheard"); tidemark.pause(); tidemark.resume()
with tidemark.step(), tidemark.range("unheard"):
    pass
@tidemark.range("decorated")
def decorated(value):
    return value + 1
assert decorated(1) == 2 and decorated.__name__ == "decorated"
for wrong in (lambda: tidemark.mark(1), lambda: tidemark.range(None), lambda: type(tidemark.step())()):
    try:
        wrong()
    except TypeError:
        continue
    sys.exit("no TypeError")
for number in (1, 2):
    with tidemark.record(f"{sys.argv[1]}.{number}", samples=False) as recording:
        for epoch in range(3):
            tidemark.mark(f"epoch {number}.{epoch} \\u00e9\\u4e2d")
            with tidemark.step():
                decorated(1)
    assert recording.paths == [f"{sys.argv[1]}.{number}"]
"""


ON_A_GPU = """
import sys, torch, tidemark
before = torch.empty(7 << 20, dtype=torch.uint8, device="cuda")
with tidemark.record(sys.argv[1], samples=False):
    big = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    model = torch.nn.Linear(512, 512, device="cuda")
    (model(torch.ones(8, 512, device="cuda")) ** 2).sum().backward()
    print(torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated(), torch.cuda.max_memory_reserved())
"""
# Under `tidemark plan`, without the recording library: this process's own environment is the one set by plan.
WITHOUT_COLLECTOR = """
import os, subprocess, sys
del os.environ["TIDEMARK_SOCKET"]
os.environ["LD_PRELOAD"] = ":".join(path for path in os.environ["LD_PRELOAD"].split(":") if "libtidemark_preload" not in path)
sys.exit(subprocess.call([sys.executable, "-c", *sys.argv[1:]]))
"""


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")


def interpreters() -> list[str]:
    """Other versions of CPython on this machine, which need no PyTorch for this."""
    found = Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python")
    supported = [str(path) for path in found if int(path.parts[-3].split(".")[1]) >= 9]
    return sorted(supported) if supported else [sys.executable]


@needs_torch
def test_what_is_imported_after_the_start_is_recorded_and_the_end_of_the_program_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    done = script(BEGINNING, path)
    assert (done.returncode, done.stderr) == (0, "")
    summary = read(path)
    assert summary["data_quality"]["complete"]
    assert issues(summary) == []  # nothing was allocated before
    assert cpu(summary)["peak_allocated_bytes"] >= 3 * MIB
    frames = [site["stack"]["frames"][-1] for site in cpu(summary)["call_sites_at_peak"] if site["bytes"] == 3 * MIB]
    assert [(frame["file"], frame["line"]) for frame in frames] == [("<string>", 5)]


@needs_torch
def test_what_happened_before_sigkill_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    assert script(BEGINNING + "os.kill(os.getpid(), signal.SIGKILL)", path).returncode == -signal.SIGKILL
    wait_for_end(path)
    summary = read(path)
    assert summary["data_quality"]["complete"]
    assert any(site["bytes"] == 3 * MIB for site in cpu(summary)["call_sites_at_peak"])


def test_what_happened_before_exit_without_cleaning_up_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    code = "import os, sys, tidemark; tidemark.start(sys.argv[1], samples=False); tidemark.mark('the last'); os._exit(3)"
    assert script(code, path).returncode == 3
    wait_for_end(path)
    assert '"the last"' in dump(path)


def dump(path: Path) -> str:
    return subprocess.check_output([find_program(), "dump", str(path)], text=True)


def wait_for_end(path: Path) -> None:
    """The recorder notices the end of its program by itself."""
    deadline = time.monotonic() + 60
    while "recorder_killed" in issues(read(path)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_control_c_and_waiting_for_children_do_not_meet_the_recorder(tmp_path: Path) -> None:
    code = """
import os, signal, sys, time, tidemark
recording = tidemark.start(sys.argv[1], samples=False)
pid = recording._recorder.pid
assert os.getsid(pid) != os.getsid(0) and os.getpgid(pid) != os.getpgid(0)
try:
    os.killpg(0, signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    pass
try:
    os.wait()
except ChildProcessError:
    pass
else:
    sys.exit("there was a child")
tidemark.mark("after")
assert tidemark.stop() == [sys.argv[1]]
while True:  # the file is complete before the process is gone
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        break
    time.sleep(0.01)
"""
    done = script(code, tmp_path / "run.tide", start_new_session=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert read(tmp_path / "run.tide")["data_quality"]["complete"]


def test_under_tidemark_run_there_is_a_range_instead(tmp_path: Path) -> None:
    code = """
import sys, warnings, tidemark
assert tidemark.is_recording()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with tidemark.record(sys.argv[1]) as recording:
        tidemark.mark("inside")
assert recording.path is None and recording.paths == []
assert tidemark.is_recording()
print(caught[0].message)
"""
    before = (find_program(), "run", "-q", "-o", str(tmp_path / "outer.tide"), "--")
    done = script(code, tmp_path / "inner.tide", before=before)
    assert done.returncode == 0, done.stderr
    assert "is being recorded already" in done.stdout
    assert not (tmp_path / "inner.tide").exists()
    marks = re.findall(r"^mark kind=(\w+)", dump(tmp_path / "outer.tide"), re.MULTILINE)
    assert marks == ["range_begin", "point", "range_end"]
    assert '"inner"' in dump(tmp_path / "outer.tide")


def test_a_run_that_leaves_the_collector_to_the_program(tmp_path: Path) -> None:
    code = (
        "import sys, tidemark, warnings; warnings.simplefilter('ignore'); tidemark.start(sys.argv[1]); tidemark.mark('inside')"
    )
    before = (find_program(), "run", "-q", "--manual", "-o", str(tmp_path / "outer.tide"), "--")
    done = script(code, tmp_path / "inner.tide", before=before)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"inside"' in dump(tmp_path / "outer.tide")
    assert not (tmp_path / "inner.tide").exists()


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parts[-3])
def test_without_torch_on_each_version(tmp_path: Path, python: str) -> None:
    path = tmp_path / "run.tide"
    done = script(WITHOUT_TORCH, path, python=python)
    assert (done.returncode, done.stderr) == (0, "")
    for number in (1, 2):
        listed = dump(Path(f"{path}.{number}"))
        assert [json.dumps(f"epoch {number}.{epoch} é中") in listed for epoch in range(3)] == [True] * 3
        assert listed.count("kind=range_begin") == 6


@needs_torch
def test_torch_of_the_system(tmp_path: Path) -> None:
    """PyTorch 1.13, if Debian's is installed."""
    python = "/usr/bin/python3"
    if not os.access(python, os.X_OK) or script("import torch", python=python).returncode != 0:
        pytest.skip("no PyTorch there")
    done = script(BEGINNING + "\nassert tidemark.stop() == [sys.argv[1]]", tmp_path / "run.tide", python=python)
    assert (done.returncode, done.stderr) == (0, "")
    summary = read(tmp_path / "run.tide")
    assert summary["process"]["torch_version"].startswith("1.")
    assert any(site["bytes"] == 3 * MIB for site in cpu(summary)["call_sites_at_peak"])


@needs_gpu
def test_a_gpu_against_pytorchs_counters(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    plan = on_gpu("--gpu", "H100-80GB", "-o", str(tmp_path / "plan.tide"))
    programs = (WITHOUT_COLLECTOR, ON_A_GPU) if plan else (ON_A_GPU,)
    done = script(*programs, path, python=GPU_PYTHON, before=plan)
    peak, held, reserved = map(int, done.stdout.splitlines()[0].split())
    summary = read(path)
    device = next(device for device in summary["devices"] if device["device"] == "cuda:0")
    assert (device["peak_allocated_bytes"], device["end_allocated_bytes"]) == (peak, held)
    assert device["peak_reserved_bytes"] == reserved
    assert device["baseline_bytes"] == 7 * MIB
    assert set(issues(summary)) == {"started_inside", "baseline"}
    held_by = {row["category"]: row["bytes"] for row in device["categories_at_peak"]}
    assert held_by["parameter"] == held_by["gradient"] == 512 * 512 * 4 + 512 * 4


def test_no_program_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark import _program

    monkeypatch.setattr(_program, "__file__", str(tmp_path / "tidemark" / "_program.py"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(tidemark.TidemarkError, match=r"there is no tidemark program: .*/bin/tidemark is missing"):
        tidemark.start(tmp_path / "run.tide")
    assert not tidemark.is_recording()
