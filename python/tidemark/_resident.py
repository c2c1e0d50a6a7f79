"""The resident memory of this process, and other sizes that Linux reports; None elsewhere."""

from __future__ import annotations

import os
from pathlib import Path


def resident_bytes() -> int | None:
    """Resident bytes of this process now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return None


def peak_resident_bytes() -> int | None:
    """Peak resident bytes of this process, since its start or ``forget_resident_peak()``."""
    return sizes_in("/proc/self/status").get("VmHWM")


def forget_resident_peak() -> bool:
    """Resets the peak; False if the kernel does not allow it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def sizes_in(path: str) -> dict[str, int]:
    """``Name:   123 kB`` lines of a file in /proc, in bytes; empty if it does not exist."""
    try:
        lines = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if len(line) == 3 and line[2] == "kB"}
