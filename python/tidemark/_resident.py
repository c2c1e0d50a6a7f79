"""The resident memory of this process, and other sizes that Linux tells; None elsewhere."""

from __future__ import annotations

import os
from pathlib import Path


def resident_bytes() -> int | None:
    """Bytes of this process that are in memory now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return None


def peak_resident_bytes() -> int | None:
    """The most bytes of this process that were in memory at a time, since its start or ``forget_resident_peak()``."""
    return sizes_in("/proc/self/status").get("VmHWM")


def forget_resident_peak() -> bool:
    """Makes the peak start from now; False where the kernel does not let it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def sizes_in(path: str) -> dict[str, int]:
    """``Name:   123 kB`` lines of a file in /proc, in bytes; nothing where it is not there."""
    try:
        lines = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if len(line) == 3 and line[2] == "kB"}
