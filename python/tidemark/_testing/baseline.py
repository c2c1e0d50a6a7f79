"""The peaks of an earlier run, in a JSON file: ``{"tidemark baseline": 1, "tests": {id: {device: bytes}}}``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tidemark._sizes import bytes_text, parse_growth
from tidemark._testing.meter import RSS

_VERSION_KEY = "tidemark baseline"
Figures = dict[str, dict[str, int]]  # by test and device: bytes


@dataclass(frozen=True)
class Change:
    """A peak that differs from the baseline's; bytes. ``fails``: it grew by more than ``--fail-over`` allows."""

    test: str
    device: str
    before: int
    now: int
    fails: bool

    def __str__(self) -> str:
        share = f", {100 * (self.now - self.before) / self.before:+.1f}%" if self.before else ""
        difference = self.now - self.before
        sign = "+" if difference >= 0 else ""
        sizes = f"{bytes_text(self.before)} → {bytes_text(self.now)} ({sign}{bytes_text(difference)}{share})"
        return f"{self.test} {self.device}: {sizes}"


def read(path: Path) -> Figures:
    """Raises ``ValueError`` with the file's name if it cannot be read or has other content."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be read: {error}; --tidemark-update-baseline writes it") from error
    if not isinstance(found, dict) or found.get(_VERSION_KEY) != 1 or not _are_figures(found.get("tests")):
        raise ValueError(f"{path} is not a baseline of tidemark; --tidemark-update-baseline writes one")
    tests: Figures = found["tests"]
    return tests


def _are_figures(found: object) -> bool:
    if not isinstance(found, dict) or not all(isinstance(figures, dict) for figures in found.values()):
        return False
    return all(type(value) is int and 0 <= value < 1 << 64 for figures in found.values() for value in figures.values())


def write(path: Path, before: Figures, measured: Figures) -> int:
    """Replaces the figures of measured tests; returns the number of tests with figures."""
    exact = {test: {name: value for name, value in figures.items() if name != RSS} for test, figures in measured.items()}
    exact = {test: figures for test, figures in exact.items() if figures}
    content = {_VERSION_KEY: 1, "tests": {**before, **exact}}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)
    return len(exact)


def compare(before: Figures, measured: Figures, fail_over: str | None) -> list[Change]:
    """The tests whose peak changed, failing ones first, then by size. Resident memory varies by run: not compared."""
    share, size = parse_growth(fail_over) if fail_over is not None else (float("inf"), 0)
    found = []
    for test, figures in measured.items():
        for device, now in figures.items():
            then = before.get(test, {}).get(device)
            if device != RSS and then is not None and then != now:
                found.append(Change(test, device, then, now, now > then * (1 + share) + size))
    return sorted(found, key=lambda change: (not change.fails, -abs(change.now - change.before), change.test, change.device))
