"""References that CPython's collector does not see: those of C++ objects, and of running frames."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from . import _safe

_HERE = str(Path(__file__).parent)


class Edges:
    """Parents of objects, by the child's id: the parent, and how it refers to the child."""

    def __init__(self) -> None:
        self._parents: dict[int, list[tuple[Any, str]]] = {}
        self._kept: list[Any] = []  # keeps ids unique while these live

    def add(self, parent: Any, child: Any, name: str) -> None:
        self._parents.setdefault(id(child), []).append((parent, name))
        self._kept.append(child)

    def forget(self) -> None:
        self._parents.clear()
        self._kept.clear()

    def parents(self, child: int) -> list[tuple[Any, str]]:
        return self._parents.get(child, [])


class Frames:
    """The running frames of all threads, except this search's; and their local variables."""

    def __init__(self, edges: Edges) -> None:
        self.running: dict[int, FrameType] = {}
        self.ours: set[int] = set()
        # No variable here may hold the innermost frame: that is this one, which would keep itself until the next collection.
        list(map(self._add_stack, sys._current_frames().values()))
        for each in self.running.values():
            if id(each) not in self.ours and not _safe.is_module_body(each):
                for name, value in _safe.locals_of(each):
                    edges.add(each, value, name)

    def _add_stack(self, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename.startswith(_HERE):
                self.ours.add(id(frame))
            self.running[id(frame)] = frame
            frame = frame.f_back

    def forget(self) -> None:
        """Releases the frames, some of which refer to this object: a cycle. Nothing else may have the frames' dicts by now."""
        for frame in self.running.values():
            if id(frame) not in self.ours:
                _safe.release_locals(frame)
        self.running.clear()

    def is_running(self, frame: object) -> bool:
        return id(frame) in self.running
