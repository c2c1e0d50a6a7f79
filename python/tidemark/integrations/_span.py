"""Steps and ranges of a recording, for callbacks: beginning and end come in different calls."""

from __future__ import annotations

from tidemark import _recorder


class Span:
    """A step (no name) or a range that one callback begins and another one ends. Ending twice or restarting is allowed."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._open: _recorder.Range | None = None

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def begin(self) -> None:
        self.end()
        self._open = _recorder.step() if self._name is None else _recorder.range(self._name)
        self._open.__enter__()

    def end(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.__exit__(None, None, None)
