"""A job that a program watches: the class on the real program, on this machine and with a worker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidemark import DistributedMemoryMonitor, job_command, job_report
from tidemark._errors import TidemarkError


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_the_ranks_of_this_machine_are_reported(tmp_path: Path) -> None:
    with DistributedMemoryMonitor(node="here", sampling_interval=0.5) as monitor:
        assert monitor.monitoring
        deadline = time.monotonic() + 30
        while not (report := monitor.generate_report(tmp_path / "now.json"))["nodes"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert report["ended_by"] == "not_yet"
        assert json.loads((tmp_path / "now.json").read_text()) == report
    assert not monitor.monitoring
    last = monitor.generate_report()
    assert last["ended_by"] == "interrupted"
    assert [node["node"] for node in last["nodes"]] == ["here"]
    assert last["job"]["node_count"] == 1


def test_what_cannot_be_done_is_said() -> None:
    monitor = DistributedMemoryMonitor()
    with pytest.raises(TidemarkError, match="start_monitoring"):
        monitor.generate_report()
    monitor.stop_monitoring()
    worker = DistributedMemoryMonitor(role="worker", master_host="127.0.0.1")
    with pytest.raises(TidemarkError, match="the master's"):
        worker.generate_report()
    with pytest.raises(TidemarkError, match="the job's key is missing"):
        worker.start_monitoring()


def test_the_helper_ends_with_its_program() -> None:
    program = (
        "import tidemark, time; m = tidemark.DistributedMemoryMonitor(); m.start_monitoring(); "
        "print(m._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        helper = int(killed.stdout.readline())
        os.kill(killed.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while is_running(helper):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_master_is_asked_for_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Path(sys.executable).parent  # where the Python tools have the server
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    if shutil.which("nats-server") is None:
        pytest.skip("nats-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    state = tmp_path / "job"
    with pytest.raises(TidemarkError, match="key is missing"):
        job_report("train", port=port, state=state)
    with DistributedMemoryMonitor(role="master", port=port, job="train", node="here", state=state) as master:
        deadline = time.monotonic() + 60
        while True:
            assert master.monitoring
            try:
                report = job_report("train", port=port, state=state)
                if report["nodes"]:
                    break
            except TidemarkError:
                pass  # the server starts
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert report["job"]["name"] == "train"
        assert [node["node"] for node in report["nodes"]] == ["here"]
        answer = job_command("record dump", ranks=[0], job="train", port=port, state=state)
        assert (answer["state"], answer["ranks"]) == ("refused", [])
        with pytest.raises(TidemarkError, match="record"):
            job_command("explode", job="train", port=port, state=state)


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        master = DistributedMemoryMonitor(role="master", port=taken.getsockname()[1], state=tmp_path / "job")
        with pytest.raises(TidemarkError, match=r"is in use|nats-server is not installed"):
            master.start_monitoring()
            time.sleep(5)
            master.generate_report()
