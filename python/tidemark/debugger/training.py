"""``tidemark.training()``: the stages of a training, named or detected in a plain loop, with time and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Callable, TypeVar

from tidemark._language import say
from tidemark._sizes import MIB, signed_mb
from tidemark.debugger.checkpoints import Checkpoint, compare
from tidemark.debugger.issues import find_issues
from tidemark.debugger.loop_stages import LoopStages
from tidemark.debugger.report_file import write_report
from tidemark.debugger.result import Result

T = TypeVar("T")
_KEPT = 10000


class Training:
    """Watches a training, as a context: ``with tidemark.training() as t``.

    ``t.stage(name, fn, *args)`` runs a part of the program and returns its value; ``stages`` has a row for each. In a plain
    loop the data, forward, backward and optimizer stages are detected automatically: ``loop`` has a row for each, ``steps``
    their number. Exceptions of the program pass unchanged.
    """

    def __init__(self, lang: str | None = None) -> None:
        self.lang = lang
        self.stages: list[Result] = []
        #: Memory in use at the stages' ends: ``name``, ``timestamp`` and ``gpu_memory``.
        self.samples: list[Result] = []
        self._loop = LoopStages()

    @property
    def steps(self) -> int:
        """Steps of optimizers so far."""
        return self._loop.steps

    @property
    def loop(self) -> list[Result]:
        """The loop's stages: ``stage``, ``count``, ``seconds``, ``memory_change_mb``, ``highest_mb``."""
        return self._loop.results()

    def stage(self, name: str, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Calls ``fn(*args, **kwargs)`` as a stage and returns its value. A stage that raises is in ``stages``, too.

        A row has ``stage``, ``timestamp``, ``seconds``, ``ok``, ``memory_comparison`` (as ``tidemark.compare_checkpoints``) and
        ``gpu_memory`` at its end.
        """
        with self._staged(name) as row:
            value = fn(*args, **kwargs)
            row["ok"] = True
        return value

    @contextmanager
    def _staged(self, name: str) -> Iterator[Result]:
        row = Result(stage=name, timestamp=datetime.now().isoformat(timespec="microseconds"), ok=False)
        before = self._checkpoint(f"{name}_start")
        began = time.perf_counter()
        try:
            yield row
        finally:
            row["seconds"] = time.perf_counter() - began
            after = self._checkpoint(f"{name}_complete")
            row.update(memory_comparison=compare(before, after), gpu_memory=after["gpu_memory"])
            self.stages.append(row)

    def _checkpoint(self, name: str) -> Checkpoint:
        taken = Checkpoint(name)
        self.samples.append(Result({key: taken[key] for key in ("name", "timestamp", "gpu_memory")}))
        del self.samples[:-_KEPT]
        return taken

    def issues(self) -> Result:
        """Growth, high use, sudden growth and fragmentation at the stages' ends."""
        return find_issues(self.samples)

    def report(self) -> str:
        """The stages and the loop as text."""
        lines = [say("Training report", self.lang), "=" * 80]
        for row in self.stages:
            change = row["memory_comparison"]
            template = "{stage}: {seconds:.2f} s, {born:.2f}MB of tensors born, {died:.2f}MB died"
            born, died = change["born"]["mb"], change["died"]["mb"]
            lines.append(say(template, self.lang, stage=row["stage"], seconds=row["seconds"], born=born, died=died))
            if not row["ok"]:
                lines.append(say("  ended with an exception", self.lang))
            lines += [f"  GPU {gpu['device_id']}: {signed_mb(gpu['memory_change_bytes'])}" for gpu in change["gpu_changes"]]
            lines += [f"  {name}: {size / MIB:.2f}MB" for name, size in change["born"]["by_category"].items()]
        if self.loop:
            lines.append(say("Steps: {count}", self.lang, count=self.steps))
        for row in self.loop:
            template = "  {stage}: {count} times, {ms:.2f} ms each, memory {change} in all, highest {highest}"
            changed, highest = row["memory_change_mb"], row["highest_mb"]
            lines.append(
                say(
                    template,
                    self.lang,
                    stage=row["stage"],
                    count=row["count"],
                    ms=1000 * row["seconds"] / row["count"],
                    change=signed_mb(None if changed is None else changed * MIB),
                    highest="n/a" if highest is None else f"{highest:.1f}MB",
                )
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """``stages``, ``loop`` and ``steps``, for JSON."""
        return {"stages": self.stages, "loop": self.loop, "steps": self.steps}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes ``report()`` to a file, or ``to_dict()`` if its name ends in ``.json``."""
        write_report(path, self.report(), self.to_dict())

    def __enter__(self) -> Training:
        self._loop.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.stop()


def training(lang: str | None = None) -> Training:
    """A context that watches a training: ``stage()`` runs a named part; a plain loop's stages are detected automatically."""
    return Training(lang)
