"""HTML for notebooks. Texts are escaped, because function names of a recorded program may contain markup."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str | None = None) -> str:
    """A table with its first column left-aligned, other columns aligned as numbers. It scrolls if it is too wide."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = f"<thead><tr>{''.join(_cells(heads, 'th'))}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(_cells(row, 'td'))}</tr>" for row in rows)
    return f'<div style="overflow-x:auto"><table>{title}{head}<tbody>{body}</tbody></table></div>'


def _cells(texts: Sequence[str], tag: str) -> list[str]:
    styles = ['<{} style="text-align:left">', *["<{}>"] * (len(texts) - 1)]
    return [f"{style.format(tag)}{escape(text)}</{tag}>" for style, text in zip(styles, texts)]


def figure(svg: str, title: str) -> str:
    """A figure as an image, so that its styles and ids do not collide with the page's."""
    data = b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{escape(title)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
