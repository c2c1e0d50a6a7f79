"""Bytes as text and back, in the commands' format: units are powers of 1024, whether written KB or KiB."""

from __future__ import annotations

import re
from math import inf, isfinite

MIB = 2**20
_PREFIXES = " kmgtp"
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(?:([kmgtp]?)b?|([kmgtp])ib?)\s*\Z", re.IGNORECASE)


def bytes_text(count: int) -> str:
    """``1.5 MiB``; negative counts have their sign."""
    value = float(abs(count))
    sign = "-" if count < 0 else ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{sign}{abs(count)} B" if unit == "B" else f"{sign}{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def to_mb(size: float | None) -> float | None:
    """Bytes in MiB; None stays None."""
    return None if size is None else size / MIB


def mb(size: float | None, width: int = 0) -> str:
    """Bytes as ``128.0MB``, the format of the older tools; ``n/a`` if unknown."""
    return "n/a".rjust(width + 2 if width else 0) if size is None else f"{size / MIB:{width}.1f}MB"


def signed_mb(size: float | None) -> str:
    """A change in bytes as ``+456.7MB``; ``n/a`` if unknown."""
    return "n/a" if size is None else f"{size / MIB:+.1f}MB"


def parse_size(text: object) -> int:
    """Bytes of ``"2 GiB"``, ``"24MB"``, ``"2G"``, ``"512"`` or a number of bytes. Raises ``ValueError``."""
    if type(text) is int and text >= 0:
        return text
    match = _SIZE.match(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not a size: write 2 GiB, 24 MB or a number of bytes")
    prefix = (match.group(2) or match.group(3) or " ").lower()
    size = float(match.group(1)) * float(1024 ** _PREFIXES.index(prefix))
    if not isfinite(size):
        raise ValueError(f"{text!r} is not a size: it is larger than any memory")
    return round(size)


def parse_growth(text: str) -> tuple[float, int]:
    """A growth limit as a share and as bytes, one of which is 0: ``"5%"`` is ``(0.05, 0)``. Raises ``ValueError``."""
    if text.strip().endswith("%"):
        try:
            share = float(text.strip()[:-1]) / 100
        except ValueError:
            share = -1.0
        if not 0 <= share < inf:  # also false for NaN
            raise ValueError(f"{text!r} is not a limit of growth: write 5% or 100MiB")
        return share, 0
    return 0.0, parse_size(text)
