"""``create_memory_debugger()``: checkpoints, a thread that samples memory, issues and a report, with a log of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark._language import say
from tidemark._sizes import MIB, signed_mb
from tidemark.debugger.checkpoints import Checkpoint, Checkpoints
from tidemark.debugger.issues import find_issues, log_issues
from tidemark.debugger.live_tensors import owned_bytes
from tidemark.debugger.log import file_logger
from tidemark.debugger.report_file import write_report
from tidemark.debugger.result import Result
from tidemark.debugger.snapshots import check_memory_status, measure, memory_lines

#: Samples kept; at two a second, three hours.
_HISTORY = 20000


class MemoryDebugger:
    """Watches this process's memory; use it as a context or call ``close()``.

    ``memory_history`` is a list of samples, oldest first, from the checkpoints and the real-time monitoring: each has ``name``,
    ``timestamp``, ``gpu_memory`` (a row for each GPU) and ``system_memory``. ``checkpoint_history`` contains the checkpoints.

    Args:
        log_dir: folder of the log.
        enable_real_time: whether to start the monitoring at once, with a sample each second.
        lang: "zh" for Chinese; ``TIDEMARK_LANG`` by default.
    """

    def __init__(
        self, log_dir: str | os.PathLike[str] = "logs/memory_debug", enable_real_time: bool = False, lang: str | None = None
    ) -> None:
        self.log_dir = Path(log_dir)
        self.lang = lang
        self.logger, self._log_handler, path = file_logger(self.log_dir, "memory_debug")
        self.log_file = str(path)
        self.memory_history: list[Any] = []
        self._checkpoints = Checkpoints()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if enable_real_time:
            self.start_real_time_monitoring()

    @property
    def checkpoint_history(self) -> list[Checkpoint]:
        """The checkpoints, oldest first."""
        return self._checkpoints.history

    @property
    def monitoring_active(self) -> bool:
        """Whether the real-time monitoring runs."""
        return self._thread is not None

    def create_memory_checkpoint(self, name: str, model: Any | None = None, optimizer: Any | None = None) -> Checkpoint:
        """Stores the memory in use and the existing tensors under a name; a model's bytes too if given."""
        taken = self._checkpoints.create(name)
        if model is not None:
            taken["model_bytes"] = owned_bytes(model, optimizer)
        self._remember(taken)
        self._log(say("Checkpoint: {name}", self.lang, name=name), *memory_lines(taken, self.lang))
        return taken

    def compare_checkpoints(self, before: str | Mapping[str, Any], after: str | Mapping[str, Any]) -> Result:
        """Compare two checkpoints: memory born and died, see ``tidemark.compare_checkpoints``."""
        found = self._checkpoints.compare(before, after)
        self._log(say("Checkpoints compared: {before} and {after}", self.lang, before=found["from"], after=found["to"]))
        for row in found["gpu_changes"]:
            self._log(f"  GPU {row['device_id']}: {signed_mb(row['memory_change_bytes'])}")
        template = "  tensors: {born:.2f}MB born, {died:.2f}MB died"
        self._log(say(template, self.lang, born=found["born"]["mb"], died=found["died"]["mb"]))
        return found

    def start_real_time_monitoring(self, interval: float = 1.0) -> None:
        """Takes a sample every ``interval`` seconds from now on; a running monitoring continues with the new interval."""
        if interval <= 0:
            raise ValueError(f"interval={interval}: seconds above 0 are needed")
        self.stop_real_time_monitoring()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, args=(interval, self._stop), name="tidemark-monitor", daemon=True)
        self._thread.start()

    def stop_real_time_monitoring(self) -> None:
        """Ends the monitoring; its samples stay."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _sample(self, interval: float, stop: threading.Event) -> None:
        while True:
            self._remember(measure("real time"))
            if stop.wait(interval):
                return

    def detect_memory_issues(self, growth_mb: float = 500.0) -> Result:
        """Growth, use above 95%, sudden growth and fragmentation in the checkpoints; the log has a warning for each."""
        issues = find_issues(self.checkpoint_history, growth_mb)
        steady = find_issues([sample for sample in self.memory_history if sample["name"] == "real time"], growth_mb)
        issues["memory_leaks"] += steady["memory_leaks"]
        log_issues(issues, self.logger, self.lang)
        return issues

    def check_memory_anomalies(self, threshold_mb: float = 500.0) -> list[Result]:
        """``tidemark.check_memory_status``."""
        return check_memory_status(threshold_mb, self.lang)

    _check_memory_anomalies = check_memory_anomalies  # the name in programs of the older tools

    def analyze_model_parameters(self, model: Any, model_name: str | None = None) -> Any:
        """``tidemark.analyze_model`` with ``values``: parameters with NaN or infinite values are logged as ERROR."""
        from tidemark.model_analysis import analyze_model  # type: ignore[import-not-found,unused-ignore]

        return analyze_model(model, model_name, values=True)

    def generate_memory_report(self, output_file: str | os.PathLike[str] | None = None) -> str:
        """Checkpoints, changes between them, the peak of the samples and issues as text.

        Also written to a file if one is given: as JSON (``checkpoints``, ``changes``, ``samples``, ``peaks_mb``, ``issues``) if
        the name ends in ``.json``.
        """
        changes = [self._checkpoints.compare(*pair) for pair in zip(self.checkpoint_history, self.checkpoint_history[1:])]
        peaks, issues = self._peaks_mb(), self.detect_memory_issues()
        lines = [say("Memory debugging report", self.lang), "=" * 80]
        for taken in self.checkpoint_history:
            lines += [f"{taken['timestamp']}  {taken['name']}", *(f"  {line}" for line in memory_lines(taken, self.lang))]
            lines += [
                f"  {device or '?'}: {size / MIB:.2f}MB {say('in tensors', self.lang)}"
                for device, size in taken["tensors_bytes"].items()
            ]
        for change in changes:
            template = "{before} to {after}: {born:.2f}MB of tensors born, {died:.2f}MB died"
            lines.append(say(template, self.lang, before=change["from"], after=change["to"], born=change["born"]["mb"],
                             died=change["died"]["mb"]))  # fmt: skip
            lines += [f"  GPU {row['device_id']}: {signed_mb(row['memory_change_bytes'])}" for row in change["gpu_changes"]]
        lines.append(say("Samples: {count}", self.lang, count=len(self.memory_history)))
        lines += [say("  GPU {gpu}: peak {mb:.1f}MB", self.lang, gpu=gpu, mb=mb) for gpu, mb in peaks.items()]
        lines.append(say("Issues: {count}", self.lang, count=sum(map(len, issues.values()))))
        lines += [f"  {kind}: {dict(issue)}" for kind, found in issues.items() for issue in found]
        text = "\n".join(lines)
        if output_file:
            samples = len(self.memory_history)
            found = {"changes": changes, "samples": samples, "peaks_mb": peaks, "issues": issues}
            write_report(output_file, text, {"checkpoints": self.checkpoint_history, **found})
            self._log(say("Report written to {path}", self.lang, path=output_file))
        return text

    def _peaks_mb(self) -> dict[int, float]:
        """The highest sample of each GPU."""
        peaks: dict[int, float] = {}
        for row in (row for sample in list(self.memory_history) for row in sample["gpu_memory"]):
            peaks[row["device_id"]] = max(peaks.get(row["device_id"], 0.0), row["max_allocated_mb"])
        return peaks

    def _remember(self, sample: Mapping[str, Any]) -> None:
        self.memory_history.append(sample)
        del self.memory_history[:-_HISTORY]

    def _log(self, *lines: str) -> None:
        for line in lines:
            self.logger.info("%s", line)

    def close(self) -> None:
        """Ends the monitoring and closes the log."""
        self.stop_real_time_monitoring()
        self.logger.removeHandler(self._log_handler)
        self._log_handler.close()

    cleanup = close

    def __enter__(self) -> MemoryDebugger:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def create_memory_debugger(
    log_dir: str | os.PathLike[str] = "logs/memory_debug", enable_real_time: bool = False, lang: str | None = None
) -> MemoryDebugger:
    """A ``MemoryDebugger``."""
    return MemoryDebugger(log_dir, enable_real_time, lang)
