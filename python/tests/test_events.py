"""The event profiler: its log, table and JSON, and that its numbers equal PyTorch's."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from gpu_programs import needs_gpu, run_on_gpu

from tidemark.events import GPUMemoryProfiler
from tidemark.events.allocator_stats import Counters
from tidemark.events.text import Event, summary, timeline

MIB = 2**20
#: A program for which PyTorch is not installed.
WITHOUT_TORCH = "import sys\nsys.modules['torch'] = None\nfrom tidemark.events import GPUMemoryProfiler\n"
KEYS = {"time", "allocated", "reserved", "max_allocated", "max_reserved", "timestamp"}


def test_events_of_a_program_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiler = GPUMemoryProfiler(log_dir=tmp_path / "logs" / "training", enable_file_logging=True)
    before = time.time()
    profiler.record("start")
    time.sleep(0.02)
    profiler.record("forward", "loss=0.1234")
    profiler.record("forward", "loss=0.0123")
    profiler.print_report()
    assert isinstance(profiler.generate_summary_report(), str)
    path = profiler.save_to_json()
    log_file = Path(profiler.log_file or "")
    profiler.cleanup()
    profiler.record("after cleanup")  # programs do this: it continues without a log

    data = json.loads(Path(path).read_text(encoding="utf-8"))
    assert list(data) == ["start", "forward"]
    assert len(data["forward"]) == 2
    first, second = data["start"][0], data["forward"][0]
    assert set(first) == KEYS
    assert first["allocated"] is None and first["max_reserved"] is None  # the CPU's memory is not counted: None, not 0
    assert second["time"] - first["time"] >= 0.02
    assert abs(datetime.fromisoformat(first["timestamp"]).timestamp() - before) < 5
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", first["timestamp"])

    assert re.fullmatch(r"memory_profiler_\d{8}_\d{6}(_\d+)?\.log", log_file.name)
    assert log_file.parent == tmp_path / "logs" / "training"
    lines = log_file.read_text(encoding="utf-8").splitlines()
    name = "MemoryProfiler_" + log_file.stem[len("memory_profiler_") :]
    line = re.compile(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d - {name} - INFO - ")
    assert all(line.match(each) for each in lines)
    assert any(f"Log file: {log_file}" in each for each in lines)
    assert any("CUDA available: False" in each for each in lines)
    events = [each.split(" - INFO - ")[1] for each in lines if " - INFO - Event: " in each]
    assert [each.split(" | ")[0] for each in events] == ["Event: start", "Event: forward", "Event: forward"]
    assert events[1].endswith("| Info: loss=0.1234")
    out, err = capsys.readouterr()
    assert "GPU Memory Timeline" in out
    assert out.count("forward              | Allocated: n/a | Reserved: n/a\n") == 2
    assert "Event: forward" in err  # the console's echo


def test_a_clock_that_is_set_changes_no_duration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiler = GPUMemoryProfiler(log_dir=tmp_path, enable_file_logging=False)
    real = time.time
    for step, name in ((0, "before"), (-7200, "set back"), (7200, "set forward")):
        monkeypatch.setattr(time, "time", lambda step=step: real() + step)
        profiler.record(name)
    times = [profiler.records[name][0]["time"] for name in ("before", "set back", "set forward")]
    assert 0 <= times[0] <= times[1] <= times[2] < 3600


def test_details_have_shapes_types_and_bytes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    profiler = GPUMemoryProfiler(tmp_path)
    tensor = torch.zeros(16, 4096, dtype=torch.float16)
    profiler.record_detailed(
        "created", tensor_info={"lora_A": tensor}, model_info={"total_params": 131072, "trainable_params": 1}
    )
    profiler.cleanup()
    log = Path(profiler.log_file or "").read_text(encoding="utf-8")
    assert "lora_A: shape=(16, 4096), dtype=torch.float16, size=0.12MB, bytes=131072, device=cpu" in log
    assert "total parameters: 131,072" in log
    assert "trainable parameters: 1" in log


def test_the_table_and_the_summary_have_the_memory_in_mb() -> None:
    def event(name: str, at: float, *mib: int) -> Event:
        return Event(name, at, at, Counters(*(each * MIB for each in mib)), None)

    events = [
        event("create", 0.0, 128, 256, 128, 256),
        event("forward", 1.0, 512, 768, 600, 768),
        event("forward", 2.5, 64, 768, 600, 768),
    ]
    by_name = {"create": events[:1], "forward": events[1:]}
    assert timeline(events).splitlines()[2:] == [
        "create               | Allocated: 128.0MB | Reserved: 256.0MB",
        "forward              | Allocated: 512.0MB | Reserved: 768.0MB",
        "forward              | Allocated: 64.0MB | Reserved: 768.0MB",
    ]
    text = summary(events, by_name, "en")
    assert "Peak at an event: forward, allocated 512.0MB, reserved 768.0MB" in text
    assert "Peak between events: 600.0MB" in text
    assert "Growth: 128.0MB to 64.0MB, -64.0MB" in text
    assert timeline([event("前向", 0.0, 1, 1, 1, 1)]).splitlines()[2].startswith("前向" + " " * 16 + " | ")


def test_a_log_that_grows_is_rotated_and_compressed(tmp_path: Path) -> None:
    profiler = GPUMemoryProfiler(tmp_path, max_log_bytes=4000, log_backups=3)
    for number in range(100):
        profiler.record(f"event {number}")
    profiler.cleanup()
    log = Path(profiler.log_file or "")
    older = [log.with_name(f"{log.name}.{number}.gz") for number in (1, 2, 3)]
    assert all(path.exists() for path in older)
    assert not log.with_name(f"{log.name}.4.gz").exists()
    assert log.stat().st_size <= 4000
    texts = [gzip.decompress(path.read_bytes()).decode() for path in reversed(older)] + [log.read_text()]
    numbers = [int(number) for number in re.findall(r"Event: event (\d+) ", "".join(texts))]
    assert numbers == list(range(numbers[0], 100))
    assert len(numbers) > 40


def test_a_log_that_is_old_is_rotated(tmp_path: Path) -> None:
    from tidemark.events.log import RotatingLog

    log = RotatingLog(tmp_path / "x.log", max_bytes=MIB, max_age_s=60, backups=2)
    record = logging.makeLogRecord({"msg": "line", "created": time.time()})
    log.emit(record)
    record.created += 61
    log.emit(record)
    log.close()
    assert gzip.decompress((tmp_path / "x.log.1.gz").read_bytes()) == b"line\n"
    assert (tmp_path / "x.log").read_bytes() == b"line\n"


def test_limits_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="log_backups"):
        GPUMemoryProfiler(tmp_path, log_backups=0)


def test_without_a_log_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiler = GPUMemoryProfiler(log_dir=tmp_path / "none", enable_file_logging=False)
    profiler.record("start")
    profiler.cleanup()
    assert not (tmp_path / "none").exists()
    assert capsys.readouterr() == ("", "")
    assert list(json.loads(Path(profiler.save_to_json()).read_text())) == ["start"]


def test_in_chinese(tmp_path: Path) -> None:
    profiler = GPUMemoryProfiler(tmp_path, lang="zh")
    profiler.record("前向传播", "loss=0.1")
    profiler.cleanup()
    log = Path(profiler.log_file or "").read_text(encoding="utf-8")
    assert "CUDA可用: False" in log
    assert re.search(r"事件: 前向传播 \| 分配: +n/a \| .* \| 额外信息: loss=0.1", log)


@pytest.mark.parametrize("end", ["raise RuntimeError('CUDA out of memory')", "sys.exit(0)", "pass"])
def test_a_program_that_ends_loses_no_line(tmp_path: Path, end: str) -> None:
    program = f"{WITHOUT_TORCH}p = GPUMemoryProfiler({str(tmp_path)!r})\np.record('last words')\n{end}"
    subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    (log,) = tmp_path.glob("*.log")
    assert "last words" in log.read_text()


def test_a_killed_program_has_the_lines_of_before(tmp_path: Path) -> None:
    program = (
        f"{WITHOUT_TORCH}import os, time\n"
        f"p = GPUMemoryProfiler({str(tmp_path)!r})\np.record('alive')\n"
        "while 'alive' not in open(p.log_file).read(): time.sleep(0.01)\nos.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, capture_output=True).returncode == -signal.SIGKILL
    (log,) = tmp_path.glob("*.log")
    assert "alive" in log.read_text()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_write_its_parents_lines(tmp_path: Path) -> None:
    program = (
        f"{WITHOUT_TORCH}import os\n"
        f"p = GPUMemoryProfiler({str(tmp_path)!r})\np.record('once')\n"
        "if os.fork() == 0:\n    p.record('child'); p.cleanup()\nelse:\n    os.wait()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    (log,) = tmp_path.glob("*.log")
    assert log.read_text().count("Event: once") == 1


PROGRAM = """
import json, sys, torch
from tidemark.events import GPUMemoryProfiler
profiler = GPUMemoryProfiler(log_dir="logs")
own = []
def record(name):
    c = torch.cuda
    own.append([c.memory_allocated(), c.memory_reserved(), c.max_memory_allocated(), c.max_memory_reserved()])
    profiler.record(name)
record("start")
kept = torch.empty(96, 2**20, dtype=torch.uint8, device="cuda")
record("created")
for size in (3, 200, 17):
    temporary = torch.empty(size, 2**20, dtype=torch.uint8, device="cuda")
    record(f"{size} MiB"); del temporary; record(f"{size} MiB freed")
torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats(); record("reset")
profiler.print_report()
print("READER", profiler._counters._reader.__qualname__)
print("OWN", json.dumps(own)); print("OURS", json.dumps(profiler.records)); profiler.cleanup()
"""


@needs_gpu
def test_the_numbers_of_a_gpu_are_pytorchs(tmp_path: Path) -> None:
    out = run_on_gpu(PROGRAM, tmp_path)
    own = json.loads(re.search(r"^OWN (.*)$", out, re.M)[1])  # type: ignore[index]
    events = json.loads(re.search(r"^OURS (.*)$", out, re.M)[1])  # type: ignore[index]
    ours = [
        [event[key] * MIB for key in ("allocated", "reserved", "max_allocated", "max_reserved")] for (event,) in events.values()
    ]
    assert ours == own
    assert ours[0] == [0, 0, 0, 0]
    assert ours[1][0] == 96 * MIB
    assert max(event[2] for event in ours) == 296 * MIB
    assert "READER counters_from_allocator" in out  # the fast way was verified and used
    assert re.search(r"^created              \| Allocated: 96.0MB \| Reserved: 96.0MB$", out, re.M)
    (log,) = (tmp_path / "logs").glob("*.log")
    assert re.search(r"GPU 0: NVIDIA H100 80GB HBM3 \(\d+\.\dGB\)", log.read_text())
