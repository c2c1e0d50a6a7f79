"""Callbacks for memory that is about to run out: the monitors' forecast, from inside a program."""

from __future__ import annotations

import atexit
import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark._logging import package_logger

_LEVELS = ("low", "medium", "high", "critical")


class RiskWatch:
    """Watches the machine until ``stop()``, the end of a ``with`` block or of the program; made by ``on_risk()``."""

    def __init__(
        self, least: int, function: Callable[[dict[str, Any]], object], monitor: _engine.Monitor, interval: float
    ) -> None:
        self._least = least
        self._function = function
        self._monitor = monitor
        self._interval = interval
        self._stopping = threading.Event()
        # A forked child does not have this thread: callbacks run only in the parent.
        self._thread = threading.Thread(target=self._watch, name="tidemark-risks", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop calling the function. Waits for a running call, except from within it."""
        atexit.unregister(self.stop)
        self._stopping.set()
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> RiskWatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def _watch(self) -> None:
        try:
            while not self._stopping.wait(self._interval):
                for change in _engine.risk_changes(self._monitor):
                    self._tell(json.loads(change))
        except TidemarkError as error:
            package_logger().error("on_risk: %s", error)
        finally:
            with contextlib.suppress(Exception):
                _engine.stop_watching(self._monitor)

    def _tell(self, change: dict[str, Any]) -> None:
        level = _LEVELS.index(change["risk_assessment"]["risk_level"])
        if self._stopping.is_set() or level < self._least or level <= _LEVELS.index(change["before"]):
            return
        try:
            self._function(change)
        except Exception:
            package_logger().exception("on_risk: the callback failed")


def on_risk(
    level: str,
    function: Callable[[dict[str, Any]], object],
    *,
    devices: Sequence[str | int] = (),
    interval: float = 1.0,
    threshold: float = 85.0,
) -> RiskWatch:
    """Call ``function(change)`` when the risk that a memory runs out rises to ``level`` or above.

    All GPUs of the machine are watched, as reported by their driver, and the host's memory (``"cpu"``); ``devices`` selects
    some, numbered as in ``tidemark devices``. ``change`` is the value that ``tidemark oom --on-critical`` passes to its
    command: ``device``, ``name``, ``before``, ``limit_bytes`` and ``risk_assessment``.

    The function runs on a dedicated thread, never on one that allocates; its exceptions are logged. It is called once for a
    rise, and again only after the risk has been below the level for half a minute.

    Args:
        level: ``"medium"``, ``"high"`` or ``"critical"``, as in ``tidemark oom``.
        function: The function to call.
        devices: Such as ``[0, 1]`` or ``["cpu"]``; empty for all.
        interval: Seconds between two samples.
        threshold: Percent of a memory's limit from which on its use alone is a medium risk.

    Raises:
        ValueError: for an invalid level, interval or threshold.
    """
    if level not in _LEVELS[1:]:
        raise ValueError(f"level {level!r}: expected one of {', '.join(_LEVELS[1:])}")
    names = [str(device).encode() for device in devices]
    monitor = _engine.watch_machine("oom", names, interval, "interval", threshold, False)
    _engine.start_watching(monitor)
    return RiskWatch(_LEVELS.index(level), function, monitor, interval)
