"""Performance of a training run over time: its metrics, its steps, and the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, SupportsFloat, Union

from tidemark import _engine
from tidemark._logging import package_logger

PathLike = Union[str, "os.PathLike[str]"]
_PARTS = {"data": 0, "forward": 1, "backward": 2, "optimizer": 3}


class StepPart:
    """A part of the step, measured as a context manager; ``PerformanceMonitor`` creates them. One at a time of each."""

    __slots__ = ("_began", "_monitor", "_part")

    def __init__(self, monitor: PerformanceMonitor, part: int) -> None:
        self._monitor = monitor
        self._part = part
        self._began = 0

    def __enter__(self) -> StepPart:
        self._began = _engine.begin_part(self._monitor._monitor)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if not _engine.end_part(self._monitor._monitor, self._part, self._began):
            self._monitor._say_late()


class PerformanceMonitor:
    """Statistics of a program's logged values, in memory that does not grow with the number of values.

    ```python
    monitor = tidemark.PerformanceMonitor()
    monitor.start_monitoring()
    for _ in range(steps):
        with monitor.waiting_for_data():
            batch = next(batches)
        monitor.log_metric("loss", train(batch))
        monitor.step(samples=len(batch))
    print(monitor.get_performance_report()["training_metrics"]["loss"]["mean"])
    ```

    All methods may be called from any thread. Values are taken from the beginning; ``start_monitoring()`` watches the machine.
    """

    def __init__(self, interval: float = 1.0, devices: Sequence[str | int] = (), disk: PathLike = "/") -> None:
        """Make a monitor.

        Args:
            interval: seconds between two samples of the machine.
            devices: GPUs, numbered as in ``tidemark devices``; empty for all.
            disk: a path on the file system to report.
        """
        names = [str(device).encode() for device in devices]
        self._monitor = _engine.performance_monitor(names, interval, os.fsencode(disk))
        self._said_late = False

    @property
    def monitoring(self) -> bool:
        """Whether the machine is being watched."""
        return _engine.is_performance_watched(self._monitor)

    def start_monitoring(self) -> None:
        """Start watching the machine; no effect if it is watched. Logged values are kept again if they were not."""
        _engine.start_performance(self._monitor)

    def stop_monitoring(self) -> None:
        """Stop. The report stays; values logged from now on are not kept, which is logged once."""
        _engine.stop_performance(self._monitor)

    def log_metric(self, name: str, value: SupportsFloat) -> None:
        """Take a value of a metric: a number, or an argument of ``float()``, such as a tensor of one element.

        NaN and infinite values are counted separately. There may be 1000 names; values of further ones are only counted.
        """
        if not _engine.log_metric(self._monitor, name, value):
            self._say_late()

    def step(self, samples: int = 0) -> None:
        """A step has ended, and the next one begins; ``samples``: how many it had."""
        if not _engine.end_step(self._monitor, samples):
            self._say_late()

    def part(self, name: str) -> StepPart:
        """Measure a part of the step: ``"data"`` (waiting for it), ``"forward"``, ``"backward"`` or ``"optimizer"``.

        Times are the host's: asynchronous work of a GPU counts where the host waits for it.
        """
        if name not in _PARTS:
            raise ValueError(f"part {name!r}: expected one of {', '.join(_PARTS)}")
        return StepPart(self, _PARTS[name])

    def waiting_for_data(self) -> StepPart:
        """Measure the time in which the loop waits for its data."""
        return StepPart(self, 0)

    def get_performance_report(self) -> dict[str, Any]:
        """Everything so far: ``gpu_metrics`` by device, ``training_metrics`` by name, ``system_metrics``, ``steps``."""
        report: dict[str, Any] = json.loads(_engine.performance_report(self._monitor))
        return report

    def generate_report(self, path: PathLike | None = None) -> dict[str, Any]:
        """The same, written to ``path`` as JSON too."""
        text = _engine.performance_report(self._monitor)
        if path is not None:
            Path(path).write_bytes(text)
        report: dict[str, Any] = json.loads(text)
        return report

    def prometheus(self) -> str:
        """Everything so far as a page for Prometheus, in its text format 0.0.4."""
        from tidemark import __version__

        return _engine.performance_page(self._monitor, __version__).decode()

    def save_chart(self, path: PathLike) -> None:
        """Draw the metrics and the machine over time, as PNG, or SVG if the name ends in it."""
        target = Path(path)
        target.write_bytes(_engine.performance_chart(self._monitor, target.suffix == ".svg"))

    def __enter__(self) -> PerformanceMonitor:
        self.start_monitoring()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop_monitoring()

    def _say_late(self) -> None:
        if not self._said_late:
            self._said_late = True
            package_logger().warning(
                "PerformanceMonitor: what is logged after stop_monitoring(), or in a forked process, is not kept"
            )
