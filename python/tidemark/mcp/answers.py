"""Results cut to the size of an answer, with a list of the omitted parts and how to request them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tidemark._errors import TidemarkError
from tidemark.mcp.printable import printable

MAX_BYTES = 64 * 1024  #: of an answer, as JSON in UTF-8
DEFAULT_ROWS = 20
MAX_ROWS = 500
MAX_TEXT = 2000  #: characters of a text

_MAX_FRAMES = 16  # of a stack: the innermost ones
_MAX_LISTED = 20  # lists reported as cut
_SMALLEST_TEXT = 200
_RESERVED_BYTES = 8 * 1024  # for the list of omitted parts

_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d+)\]")


def answer(document: dict[str, Any], rows: int = DEFAULT_ROWS) -> str:
    """The document as JSON of at most MAX_BYTES: each of its lists has at most ``rows`` items. ``left_out``: longer ones."""
    return _fitted(document, "", rows)


def page(document: dict[str, Any], name: str, offset: int, rows: int) -> str:
    """Items of one list of the document, from ``offset`` on, as JSON of at most MAX_BYTES."""
    items = find_list(document, name)
    if offset > len(items):
        raise TidemarkError(f"offset: {name} has {len(items)} items")
    head = {key: document[key] for key in ("file",) if key in document}
    return _fitted({**head, "list": name, "count": len(items), "offset": offset, "items": items[offset:]}, name, rows)


def find_list(document: Any, name: str) -> list[Any]:
    """The list with this name, in the form of left_out: ``devices[0].call_sites_at_peak``."""
    found = document
    at = 0
    while at < len(name):
        step = _STEP.match(name, at)
        try:
            found = found[step[1] or int(step[2])] if step else None
        except (IndexError, KeyError, TypeError):
            found = None
        if step is None or found is None:
            break
        at = step.end()
    if not isinstance(found, list):
        raise TidemarkError(f"list: the answer has no list {printable(name)}; left_out names those that were cut")
    return found


def _fitted(document: dict[str, Any], page_of: str, rows: int) -> str:
    """The smallest cut that fits: first fewer frames of each stack, then fewer rows, then shorter texts."""
    for count, frames, text in _sizes(rows):
        cut = _Cut(count, frames, text, page_of, document.get("offset", 0))
        short = cut.value(document, "")
        if cut.lists:
            short["left_out"] = cut.left_out()
        written = json.dumps(short, ensure_ascii=False, separators=(",", ":"))
        if len(written.encode("utf-8")) <= MAX_BYTES:
            return written
    raise TidemarkError("the answer is too long even with one row of each list: choose fewer blocks, or a device")


def _sizes(rows: int) -> Iterator[tuple[int, int, int]]:
    yield rows, _MAX_FRAMES, MAX_TEXT
    yield rows, 6, MAX_TEXT
    while rows > 1:
        rows = (rows + 1) // 2
        yield rows, 3, MAX_TEXT
    yield 1, 1, _SMALLEST_TEXT


class _Cut:
    """Makes a shorter copy of a document, and records the omitted parts."""

    def __init__(self, rows: int, frames: int, text: int, page_of: str, offset: int) -> None:
        self._rows = rows
        self._frames = frames
        self._text = text
        self._page_of = page_of  # "": a whole document; otherwise the list of these items, from `offset` on
        self._offset = offset
        self.lists: list[dict[str, Any]] = []

    def value(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            return self._cut_text(value)
        if isinstance(value, dict):
            return {self._cut_text(key): self.value(item, f"{name}.{key}" if name else key) for key, item in value.items()}
        if isinstance(value, list):
            return self._cut_list(value, name)
        return value

    def _cut_text(self, text: str) -> str:
        more = len(text) - self._text
        return printable(text) if more <= 0 else f"{printable(text[: self._text])}… ({more} characters more)"

    def _cut_list(self, items: list[Any], name: str) -> list[Any]:
        first = 0
        last_ones = name.endswith(".frames")  # the innermost frame is the last
        if self._page_of and name == "items":
            name, first = self._page_of, self._offset
        most = self._frames if last_ones else self._rows
        begin = max(0, len(items) - most) if last_ones else 0
        shown = items[begin : begin + most]
        if len(shown) < len(items):
            cut: dict[str, Any] = {
                "list": name,
                "count": first + len(items),
                "from": first + begin,
                "to": first + begin + len(shown),
            }
            others = items[begin + most :]
            sizes = [item["bytes"] for item in others if isinstance(item, dict) and isinstance(item.get("bytes"), int)]
            if not last_ones and len(sizes) == len(others):
                cut["bytes_left_out"] = sum(sizes)
            self.lists.append(cut)
        return [self.value(item, f"{name}[{first + begin + index}]") for index, item in enumerate(shown)]

    def left_out(self) -> dict[str, Any]:
        """The lists that were cut, those of the document itself before those of their rows."""
        lists = sorted(self.lists, key=lambda cut: cut["list"].count("["))
        said: dict[str, Any] = {
            "lists": [],
            "ask": "the same tool with list and offset (and max_rows) gives the items of a list from there on",
        }
        used = 0
        for cut in lists[:_MAX_LISTED]:
            used += len(json.dumps(cut, ensure_ascii=False).encode("utf-8"))
            if used > _RESERVED_BYTES:
                break
            said["lists"].append(cut)
        more = len(lists) - len(said["lists"])
        if more:
            said["more_lists"] = more
        return said
