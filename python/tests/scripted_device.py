"""A device for ``StepGuard(memory=...)`` that needs no GPU."""

from __future__ import annotations


class ScriptedDevice:
    """The test sets ``taken``, which each step begins at 0 unless it is ``steady``; ``available`` is always free."""

    def __init__(self, available: int, taken: int = 0, steady: bool = False) -> None:
        self.available = available
        self.taken = taken
        self._steady = steady

    def allocated(self) -> int:
        return 0

    def peak(self) -> int:
        return self.taken

    def reset_peak(self) -> None:
        if not self._steady:
            self.taken = 0

    def empty(self) -> None:
        pass

    def room(self, needed: float, emptied: bool) -> int:
        return self.available
