"""Results as titled tables: text for terminals and logs, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidemark._columns import aligned
from tidemark._html import table
from tidemark._sizes import MIB


class Section(NamedTuple):
    """A table with a title; its first column is text, the others are numbers."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def sections_text(sections: Sequence[Section]) -> str:
    """The sections as text, without a line break at the end."""
    return "\n\n".join(_section_text(section) for section in sections)


def sections_html(sections: Sequence[Section]) -> str:
    return "".join(table(section.heads, section.rows, section.title) for section in sections)


def mb_text(size: int) -> str:
    """``"12.5"``; three digits for values below a tenth."""
    mb = size / MIB
    return f"{mb:,.1f}" if mb >= 0.1 or size == 0 else f"{mb:.3g}"


def _section_text(section: Section) -> str:
    lines = aligned([section.heads, *section.rows] if section.heads else section.rows)
    return "\n".join([section.title, *(f"  {line}" for line in lines)])
