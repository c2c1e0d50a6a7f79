"""Monitors as objects: the reports of the commands, and warnings. Every machine has the host's memory."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tidemark
from tidemark.compat import FragmentationAnalyzer, MemoryLeakDetector, MemoryProfiler, OOMDetector

KINDS = {"profile": MemoryProfiler, "oom": OOMDetector, "fragment": FragmentationAnalyzer, "leak": MemoryLeakDetector}


def command_report(command: str, folder: Path) -> dict:
    program = Path(tidemark.__file__).parent / "bin" / "tidemark"
    output = folder / "command.json"
    arguments = [program, command, "--devices", "cpu", "--duration", "0.1", "--interval", "0.02", "-o", output]
    subprocess.run(arguments, check=True, capture_output=True)
    return json.loads(output.read_text())


@pytest.mark.parametrize("command", KINDS)
def test_reports_are_those_of_the_commands(command, tmp_path):
    monitor = KINDS[command](sampling_interval=0.02, devices=["cpu"])
    with pytest.raises(tidemark.TidemarkError, match="start_monitoring"):
        monitor.generate_report()
    monitor.start_monitoring()
    assert monitor.monitoring
    report = monitor.generate_report(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == report
    monitor.stop_monitoring()
    assert not monitor.monitoring
    assert monitor.generate_report()["ended_by"] == "stopped"
    expected = command_report(command, tmp_path)
    assert report.keys() == expected.keys()
    if "devices" in expected:
        assert report["devices"]["cpu"].keys() == expected["devices"]["cpu"].keys()


def test_older_keys():
    with MemoryProfiler(sampling_interval=0.02, devices=["cpu"]) as profiler:
        device = profiler.generate_report()["devices"]["cpu"]
    assert {"allocated", "free", "total", "utilization"} == device["current_memory"].keys()
    assert {"avg_utilization", "max_utilization", "avg_fragmentation", "num_snapshots"} == device["statistics"].keys()
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert device["current_memory"]["total"] <= total
    assert device["peak_memory"] >= device["current_memory"]["allocated"]


def test_a_warning_is_told_and_one_that_raises_stops_nothing(caplog):
    told = threading.Event()
    seen = []

    def fails(device_id, prediction):
        raise RuntimeError("a callback's own fault")

    def tell(device_id, prediction):
        seen.append((device_id, prediction.risk_level.value, threading.current_thread().name))
        told.set()

    detector = OOMDetector(sampling_interval=0.02, devices=["cpu"], threshold=0.001)  # any use is above it
    detector.add_warning_callback(fails)
    detector.add_warning_callback(tell)
    with caplog.at_level(logging.ERROR, logger="tidemark"):
        detector.start_monitoring()
        detector.start_monitoring()
        assert told.wait(60)
        detector.stop_monitoring()
    assert seen == [("cpu", "medium", "tidemark-oom")]
    assert "a callback's own fault" in caplog.text
    risk = detector.generate_report()["devices"]["cpu"]["risk_assessment"]
    assert risk["risk_level"] == "medium"
    assert {"confidence", "growth_rate_mb_per_sec", "predicted_oom_time_seconds", "recommendation"} <= risk.keys()


def test_a_callback_may_stop_the_monitor():
    stopped = threading.Event()
    detector = OOMDetector(sampling_interval=0.02, devices=["cpu"], threshold=0.001)

    def stop(device_id, prediction):
        detector.stop_monitoring()
        stopped.set()

    detector.add_warning_callback(stop)
    detector.start_monitoring()
    assert stopped.wait(60)
    assert not detector.monitoring


def test_a_device_that_is_not_there_is_said(caplog):
    profiler = MemoryProfiler(sampling_interval=0.02, devices=[77])
    profiler.start_monitoring()
    with pytest.raises(tidemark.TidemarkError, match="there is no device 77 here"):
        profiler.generate_report()
    detector = OOMDetector(sampling_interval=0.02, devices=[77])
    with caplog.at_level(logging.ERROR, logger="tidemark"):
        detector.start_monitoring()
        detector._thread.join(60)
    assert "there is no device 77 here" in caplog.text


def test_growth_by_stack_needs_a_recording():
    with MemoryLeakDetector(sampling_interval=0.02, devices=["cpu"], threshold=2, enable_tracking=True) as detector:
        report = detector.generate_report()
    assert report["threshold_mb_per_minute"] == 2
    assert report["tracking"]["enabled"] is True


def test_a_forked_child_does_not_watch():
    with MemoryProfiler(sampling_interval=0.02, devices=["cpu"]) as profiler:
        child = os.fork()
        if child == 0:
            try:
                profiler.generate_report()
            except tidemark.TidemarkError:
                os._exit(1 if profiler.monitoring else 0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_program_may_end_while_it_is_watched():
    code = "import tidemark\nd = tidemark.OOMDetector(0.02)\nd.add_warning_callback(print)\nd.start_monitoring()\n"
    code += "p = tidemark.MemoryProfiler(0.02)\np.start_monitoring()\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (MemoryProfiler, {"sampling_interval": 0}),
        (OOMDetector, {"threshold": 101}),
        (MemoryLeakDetector, {"threshold": -1}),
    ],
)
def test_what_cannot_be_is_refused(kind, arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        kind(**arguments)
