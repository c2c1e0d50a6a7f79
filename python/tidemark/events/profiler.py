"""``GPUMemoryProfiler``: named events with the memory at each, in a log, a table and JSON."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tidemark._clock import steady_time
from tidemark._language import say
from tidemark._recorder import mark
from tidemark._sizes import MIB
from tidemark.events.counters import DeviceCounters
from tidemark.events.log import LineWriter, open_log
from tidemark.events.text import Event, event_line, model_lines, summary, tensor_lines, timeline


class GPUMemoryProfiler:
    """Records named events, each with PyTorch's allocated and reserved memory on the GPU, and the peaks of both so far.

    ``record()`` takes a few microseconds: a thread writes the log (see ``tidemark.events.log`` for lines lost by a kill).
    Events are also marks of a running Tidemark recording. Without CUDA, or without PyTorch, events have times and unknown
    memory.

    Args:
        log_dir: folder of the log and of ``save_to_json()``; created if missing.
        enable_file_logging: False writes neither the log nor the console's lines.
        max_log_bytes: size at which the log is rotated.
        max_log_age_s: age at which it is rotated, in seconds.
        log_backups: how many compressed earlier logs are kept.
        device: a CUDA device to read instead of the current one.
        lang: "zh" for Chinese; ``TIDEMARK_LANG`` by default.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] = "logs/memory_profiler",
        enable_file_logging: bool = True,
        *,
        max_log_bytes: int = 10 * MIB,
        max_log_age_s: float = 86400.0,
        log_backups: int = 5,
        device: object | None = None,
        lang: str | None = None,
    ) -> None:
        self.log_dir = Path(log_dir)
        self.enable_file_logging = enable_file_logging
        self.lang = lang
        self.logger: logging.Logger | None = None
        self._log_path: Path | None = None
        self._events: list[Event] = []
        self._counters = DeviceCounters(device)
        self._read = self._counters.read
        self._writer: LineWriter | None = None
        if enable_file_logging:
            self.logger, self._log_path = open_log(self.log_dir, max_log_bytes, max_log_age_s, log_backups)
            self._write_header()
            self._writer = LineWriter(self.logger)
        self.start_time = steady_time()

    @property
    def log_file(self) -> str | None:
        """The log's path, with every event until now written; None without a log."""
        self._flush()
        return None if self._log_path is None else str(self._log_path)

    def _write_header(self) -> None:
        torch, cuda = self._counters.torch, self._counters.cuda
        lines = ["=" * 80, say("GPU memory profiler started", self.lang), "=" * 80]
        lines.append(say("Log file: {path}", self.lang, path=self._log_path))
        lines.append(say("CUDA available: {yes}", self.lang, yes=cuda))
        lines.append(say("Number of GPUs: {count}", self.lang, count=torch.cuda.device_count() if cuda else 0))
        for index in range(torch.cuda.device_count() if cuda else 0):
            gpu = torch.cuda.get_device_properties(index)
            lines.append(f"GPU {index}: {gpu.name} ({gpu.total_memory / 2**30:.1f}GB)")
        for line in lines:
            self._log(line)

    def record(self, event: str, info: object | None = None) -> None:
        """Records an event now; ``info`` is free text for the log, such as ``"loss=0.1234"``."""
        now = time.time()
        recorded = Event(str(event), steady_time() - self.start_time, now, self._read(), None if info is None else str(info))
        self._events.append(recorded)
        if self._writer is not None:
            self._writer.put((now, partial(event_line, recorded, self.lang)))
        mark(recorded.name)

    def record_detailed(
        self, event: str, tensor_info: Mapping[str, Any] | None = None, model_info: Mapping[str, Any] | None = None
    ) -> None:
        """Records an event, and in the log the shapes, types and bytes of tensors and the model's parameter counts."""
        self.record(event)
        for make, described in ((tensor_lines, tensor_info), (model_lines, model_info)):
            for line in make(event, described, self.lang) if described else ():
                self._log(line)

    @property
    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Events by name, in the format of ``save_to_json()``: seconds, MB (None if unknown) and a time of day."""
        by_name: dict[str, list[dict[str, Any]]] = {}
        for event in list(self._events):
            names = ("allocated", "reserved", "max_allocated", "max_reserved")
            sizes: dict[str, float | None] = dict.fromkeys(names)
            if event.counters is not None:
                sizes = {name: size / MIB for name, size in zip(names, event.counters)}
            timestamp = datetime.fromtimestamp(event.at).isoformat(timespec="microseconds")
            by_name.setdefault(event.name, []).append({"time": event.time, **sizes, "timestamp": timestamp})
        return by_name

    def print_report(self) -> None:
        """Prints a row for each event, in order of time; the log has the table too."""
        table = timeline(list(self._events))
        self._log(table)
        self._flush()
        print(table)

    def generate_summary_report(self) -> str:
        """Prints, logs and returns the peak and its event, growth, and each event's averages."""
        text = summary(self._events, self._by_name(), self.lang)
        self._log(text)
        self._flush()
        print(text)
        return text

    def save_to_json(self, filepath: str | os.PathLike[str] | None = None) -> str:
        """Writes ``records`` as JSON; returns the path, by default ``log_dir/memory_data_<time>.json``."""
        path = Path(filepath) if filepath else self.log_dir / f"memory_data_{time.strftime('%Y%m%d_%H%M%S')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.records, indent=2, ensure_ascii=False), encoding="utf-8")
        self._log(say("Events written to {path}", self.lang, path=path))
        self._flush()
        return str(path)

    def cleanup(self) -> None:
        """Writes waiting lines and closes the log. Events stay, and ``record()`` continues without a log."""
        if self._writer is not None:
            self._log(say("GPU memory profiler closed", self.lang))
            self._writer.close()
        self._writer = self.logger = None

    def __enter__(self) -> GPUMemoryProfiler:
        return self

    def __exit__(self, *exception: object) -> None:
        self.cleanup()

    def _by_name(self) -> dict[str, list[Event]]:
        by_name: dict[str, list[Event]] = {}
        for event in list(self._events):
            by_name.setdefault(event.name, []).append(event)
        return by_name

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _log(self, text: str) -> None:
        """Logs each line of a text, after the waiting events."""
        for line in text.splitlines():
            if self._writer is not None:
                self._writer.put((time.time(), partial(str, line)))
            elif self.logger is not None:
                self.logger.info("%s", line)
