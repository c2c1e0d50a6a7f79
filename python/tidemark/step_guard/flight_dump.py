"""Asks the flight recorder of this process (``tidemark run --keep``) for a dump."""

from __future__ import annotations

import os
import signal
from pathlib import Path

_MAX_ANCESTORS = 64
_WITH_VALUE = {"--keep", "--dump", "-o", "--output"}


def ask_for_dump() -> int | None:
    """The process ID of the recorder that dumps now; ``None`` if no recorder of this process dumps on SIGUSR1.

    All ranks below one recorder are dumped together: of several local ranks, only the first one asks.
    """
    if os.environ.get("LOCAL_RANK", "0") != "0" and not _is_run(_arguments(os.getppid())):
        return None
    process = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        arguments = _arguments(process)
        if dumps_on_signal(arguments):
            try:
                os.kill(process, signal.SIGUSR1)
            except OSError:
                return None
            return process
        if process <= 1 or _is_run(arguments):
            return None
        process = _parent(process)
    return None


def dumps_on_signal(arguments: list[str]) -> bool:
    """Whether these are the arguments of a ``tidemark run`` that dumps on SIGUSR1.

    Any other one passes the signal on to its program, which would be killed: in doubt, false.
    """
    if not _is_run(arguments):
        return False
    keeps, on_signal = False, True
    left = arguments[2:]
    while left and left[0].startswith("-") and left[0] != "--":
        name, equals, value = left.pop(0).partition("=")
        if not equals and left and (name in _WITH_VALUE or ("--" in left and not left[0].startswith("-"))):
            value = left.pop(0)
        keeps |= name == "--keep"
        if name == "--dump":
            on_signal = "on-signal" in value
    return keeps and on_signal


def _is_run(arguments: list[str]) -> bool:
    return len(arguments) >= 3 and arguments[1] == "run" and arguments[0].rpartition("/")[2] == "tidemark"


def _arguments(process: int) -> list[str]:
    try:
        content = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return []
    return [argument.decode("utf-8", "surrogateescape") for argument in content.split(b"\0")[:-1]]


def _parent(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
    except (OSError, StopIteration, ValueError):
        return 0
