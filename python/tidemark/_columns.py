"""Rows of text in terminal columns."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining, east_asian_width


def width(text: str) -> int:
    """Columns that the text takes: a Chinese character takes two, a combining accent none."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """One line for each row: the first column to the left, the others to the right, two spaces between them."""
    columns = max((len(row) for row in rows), default=0)
    widths = [max((width(row[column]) for row in rows if column < len(row)), default=0) for column in range(columns)]
    lines = []
    for row in rows:
        cells = [padded(cell, widths[column], left=column == 0) for column, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return lines


def padded(cell: str, columns: int, left: bool = True) -> str:
    """The text at the left (or right) of this many columns; longer texts are unchanged."""
    spaces = " " * (columns - width(cell))
    return cell + spaces if left else spaces + cell
