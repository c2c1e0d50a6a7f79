"""``@pytest.mark.limit_memory("2 GiB", device="cuda")``."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tidemark._sizes import bytes_text, parse_size
from tidemark._testing.meter import RSS

HIDDEN = "tidemark_limit_memory"


def limits_of(item: Any, memray: bool) -> dict[str | None, int]:
    """Bytes by device, from the closest marker for each. ``None`` is no device: every GPU, or without one the process's memory.

    If pytest-memray is active, it handles markers without a device. Raises ``ValueError`` for an invalid marker.
    """
    found: dict[str | None, int] = {}
    for marker in (mark for mark in item.iter_markers() if mark.name in ("limit_memory", HIDDEN)):
        device = marker.kwargs.get("device")
        if device is None and memray:
            continue
        if len(marker.args) != 1 or set(marker.kwargs) - {"device"}:
            raise ValueError('write @pytest.mark.limit_memory("2 GiB", device="cuda")')
        if device is not None and device != "cpu" and str(device).split(":")[0] != "cuda":
            raise ValueError(f"limit_memory: {device!r} is not a device: write cuda, cuda:1 or cpu")
        found.setdefault(None if device is None else str(device), parse_size(marker.args[0]))
    return found


def hide_from_memray(item: Any) -> None:
    """Hides markers with ``device``, which pytest-memray does not know, from it: renames them."""
    for node in item.listchain():
        for index, mark in enumerate(node.own_markers):
            if mark.name == "limit_memory" and "device" in mark.kwargs:
                node.own_markers[index] = getattr(pytest.mark, HIDDEN)(*mark.args, **mark.kwargs).mark


class Exceeded(NamedTuple):
    """A device above its limit."""

    device: str  #: "cuda:0", or "cpu"
    text: str


def _measured(device: str | None, figures: dict[str, int]) -> list[str]:
    """The figures that a limit for ``device`` is about."""
    gpus = [name for name in figures if name != RSS]
    if device is None:
        return gpus or [RSS]
    if device == "cpu":
        return [RSS]
    return [name for name in gpus if device in (name, "cuda")]


def exceeded(limits: dict[str | None, int], figures: dict[str, int]) -> list[Exceeded]:
    """The devices above their limits."""
    found = []
    for device, limit in limits.items():
        for name in _measured(device, figures):
            used = figures.get(name)
            if used is not None and used > limit:
                what = "the process's resident memory grew by" if name == RSS else f"{name}: the test's peak is"
                text = f"{what} {bytes_text(used)} ({used} bytes), the limit is {bytes_text(limit)} ({limit} bytes)"
                found.append(Exceeded("cpu" if name == RSS else name, text))
    return found


def unchecked(limits: dict[str | None, int], figures: dict[str, int]) -> list[str]:
    """A line for each limit without a figure: the test may not have used its device, or the machine has none."""
    return [
        f"limit_memory(device={device!r}) was not checked: the test used no such device"
        for device in limits
        if device is not None and not any(name in figures for name in _measured(device, figures))
    ]
