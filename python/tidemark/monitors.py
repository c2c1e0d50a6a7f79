"""Monitors: the data of ``tidemark profile``, ``oom``, ``leak`` and ``fragment``, from inside a program.

Each watches the machine on its own threads, as reported by drivers and the kernel: devices, their processes, the host's memory,
and the processes being recorded. Forked children do not watch.
"""

from __future__ import annotations

import atexit
import contextlib
import enum
import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, Union

from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark._logging import package_logger

PathLike = Union[str, "os.PathLike[str]"]
_Self = TypeVar("_Self", bound="Monitor")


class RiskLevel(enum.Enum):
    """The likelihood that a memory runs out."""

    LOW = "low"  #: no growth that would reach the limit
    MEDIUM = "medium"  #: above the threshold, or the limit is far
    HIGH = "high"  #: the limit is reached within ten minutes
    CRITICAL = "critical"  #: it is about to be reached


@dataclass(frozen=True)
class OOMPrediction:
    """A forecast for one memory; ``None`` for unknown values."""

    risk_level: RiskLevel
    confidence: float | None  #: share of such forecasts that are right, 0 to 1
    current_usage_percent: float | None  #: of the limit
    growth_rate_mb_per_sec: float | None  #: of the running peaks, in MiB; 0 if they do not grow
    predicted_oom_time_seconds: float | None  #: until the limit is reached; ``None`` if it will not be
    recommendation: str


WarningCallback = Callable[[Union[int, str], OOMPrediction], object]


class Monitor:
    """The base class of all monitors; use a subclass."""

    def __init__(
        self,
        kind: str,
        sampling_interval: float,
        devices: Sequence[str | int],
        *,
        threshold: float = 0.0,
        tracking: bool = False,
    ) -> None:
        self._kind = kind
        self._interval = sampling_interval
        names = [str(device).encode() for device in devices]
        self._watch = _engine.watch_machine(kind, names, sampling_interval, "sampling_interval", threshold, tracking)

    @property
    def monitoring(self) -> bool:
        """Whether it is watching."""
        return _engine.is_watching(self._watch)

    def start_monitoring(self) -> None:
        """Start watching, and restart if it was stopped; no effect if it is watching already."""
        _engine.start_watching(self._watch)

    def stop_monitoring(self) -> None:
        """Stop; waits for a running driver call, at most a second. No effect if it is stopped."""
        _engine.stop_watching(self._watch)

    def generate_report(self, path: PathLike | None = None) -> dict[str, Any]:
        """The data since the start, in the command's JSON format; also written to ``path``. Also available while it watches.

        Raises TidemarkError if it was never started, and for a device that does not exist; OSError if the file cannot be
        written.
        """
        text = _engine.watch_report(self._watch, self._kind)
        if path is not None:
            Path(path).write_bytes(text)
        report: dict[str, Any] = json.loads(text)
        return report

    def __enter__(self: _Self) -> _Self:
        self.start_monitoring()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop_monitoring()


class MemoryProfiler(Monitor):
    """Memory of devices and processes over time: the report of ``tidemark profile``."""

    def __init__(self, sampling_interval: float = 1.0, devices: Sequence[str | int] = ()) -> None:
        """``devices`` are numbered as in ``tidemark devices``, such as ``[0, 1]`` or ``["cpu"]``; empty for all."""
        super().__init__("profile", sampling_interval, devices)


class OOMDetector(Monitor):
    """Whether a memory runs out, and when: the report of ``tidemark oom``."""

    def __init__(self, sampling_interval: float = 1.0, devices: Sequence[str | int] = (), threshold: float = 85.0) -> None:
        """``threshold``: percent of a memory's limit from which on its use alone is a medium risk."""
        super().__init__("oom", sampling_interval, devices, threshold=threshold)
        self._callbacks: list[WarningCallback] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def add_warning_callback(self, function: WarningCallback) -> None:
        """Call ``function(device_id, prediction)`` when a risk rises to medium or above, once for a rise.

        ``device_id`` is the number of a GPU, or ``"cpu"`` for the host. It runs on a dedicated thread; its exceptions are
        logged, and the monitor continues.
        """
        self._callbacks.append(function)

    def start_monitoring(self) -> None:
        """Start watching, and restart if it was stopped; no effect if it is watching already."""
        super().start_monitoring()
        if self._thread is None or not self._thread.is_alive():
            self._stopping = threading.Event()
            arguments = (self._stopping,)
            self._thread = threading.Thread(target=self._tell_changes, args=arguments, name="tidemark-oom", daemon=True)
            self._thread.start()
            atexit.register(self.stop_monitoring)

    def stop_monitoring(self) -> None:
        """Stop; waits for a running callback, except from within it. No effect if it is stopped."""
        atexit.unregister(self.stop_monitoring)
        self._stopping.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join()
        super().stop_monitoring()

    def _tell_changes(self, stopping: threading.Event) -> None:
        try:
            while not stopping.wait(min(self._interval, 0.5)):
                for change in _engine.risk_changes(self._watch):
                    self._tell(json.loads(change), stopping)
        except TidemarkError as error:
            package_logger().error("OOMDetector: %s", error)
            with contextlib.suppress(Exception):
                _engine.stop_watching(self._watch)

    def _tell(self, change: dict[str, Any], stopping: threading.Event) -> None:
        risk = change["risk_assessment"]
        levels = [level.value for level in RiskLevel]
        if levels.index(risk["risk_level"]) <= levels.index(change["before"]):
            return
        prediction = OOMPrediction(
            risk_level=RiskLevel(risk["risk_level"]),
            confidence=risk["confidence"],
            current_usage_percent=risk["current_usage_percent"],
            growth_rate_mb_per_sec=risk["growth_rate_mb_per_sec"],
            predicted_oom_time_seconds=risk["predicted_oom_time_seconds"],
            recommendation=risk["recommendation"],
        )
        device: str = change["device"]
        for function in list(self._callbacks):
            if stopping.is_set():
                return
            try:
                function(int(device) if device.isdigit() else device, prediction)
            except Exception:
                package_logger().exception("OOMDetector: a warning callback failed")


class FragmentationAnalyzer(Monitor):
    """The fragmentation of recorded processes' memory: the report of ``tidemark fragment``.

    Only an allocator has this data: record the program with ``tidemark run`` or ``tidemark.record()``.
    """

    def __init__(self, sampling_interval: float = 1.0, devices: Sequence[str | int] = ()) -> None:
        """``devices``: see ``MemoryProfiler``."""
        super().__init__("fragment", sampling_interval, devices)


class MemoryLeakDetector(Monitor):
    """The memories that grow, and their rates: the report of ``tidemark leak``."""

    def __init__(
        self,
        sampling_interval: float = 1.0,
        devices: Sequence[str | int] = (),
        threshold: float = 10.0,
        enable_tracking: bool = False,
    ) -> None:
        """Growth above ``threshold`` MB a minute is reported.

        ``enable_tracking``: also by stack and module, for processes that are being recorded.
        """
        super().__init__("leak", sampling_interval, devices, threshold=threshold, tracking=enable_tracking)
