"""Other forms of results: the command's text, its JSON, and notebook output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from tidemark.reading.from_json import from_json

if TYPE_CHECKING:
    from tidemark import _engine


#: Results that a notebook shows as tables of their lists, with the text folded, instead of only the text.
_WITH_TABLES = frozenset({"Breakdown", "Leaks", "Table", "Temporary"})


class Rendering:
    """A result in the engine, formatted on request. Copies and pickles contain the formats written until then."""

    def __init__(self, handle: _engine.Result | None, formats: tuple[str, ...], written: dict[str, str] | None = None) -> None:
        self._handle = handle
        self._formats = formats
        self._written = dict(written or {})

    def write(self, format: str) -> str | None:
        """The command's output with ``--format``; None if the analysis has no such format."""
        if format not in self._formats:
            return None
        if format not in self._written and self._handle is not None:
            from tidemark import _engine

            self._written[format] = _engine.write(self._handle, format).decode("utf-8", "replace")
        return self._written.get(format)

    def __copy__(self) -> Rendering:
        return self

    def __deepcopy__(self, memo: object) -> Rendering:
        return self  # it is immutable from outside

    def __reduce__(self) -> tuple[type[Rendering], tuple[None, tuple[str, ...], dict[str, str]]]:
        written = {format: text for format in self._formats if (text := self.write(format)) is not None}
        return (Rendering, (None, self._formats, written))


class Result:
    """The result of an analysis. ``print()`` shows the command's output; the fields are those of its JSON."""

    _rendering: Rendering

    def __str__(self) -> str:
        return (self._rendering.write("text") or "").rstrip("\n")

    def __repr__(self) -> str:
        of = getattr(self, "file", None)
        return f"<tidemark {type(self).__name__}{'' if of is None else f' of {of}'}: print() shows it>"

    def to_json(self) -> str:
        """The command's JSON."""
        return self._rendering.write("json") or ""

    def to_dict(self) -> dict[str, Any]:
        """The command's JSON as dicts and lists."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def to_svg(self) -> str | None:
        """The command's figure; None if it has none."""
        return self._rendering.write("svg")

    def _repr_html_(self) -> str:
        from html import escape

        from tidemark import _html
        from tidemark.reading.html import tables

        svg = self.to_svg()
        figure = "" if svg is None else _html.figure(svg, type(self).__name__)
        text = f'<pre style="line-height:1.25;overflow-x:auto">{escape(str(self))}</pre>'
        if type(self).__name__ in _WITH_TABLES:
            first = escape(str(self).partition("\n")[0])
            text = f"{tables(self.to_dict())}<details><summary>{first}</summary>{text}</details>"
        return figure + text


R = TypeVar("R", bound=Result)


def make_result(
    kind: type[R],
    handle: _engine.Result,
    formats: list[str],
    shape: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document,
) -> R:
    """A ``kind`` from the engine's result. ``shape``: makes the fields' object from the JSON, if they differ."""
    rendering = Rendering(handle, tuple(format for format in formats if format in ("text", "json", "svg")))
    document: dict[str, Any] = json.loads(rendering.write("json") or "{}")
    result = from_json(kind, shape(document))
    object.__setattr__(result, "_rendering", rendering)  # frozen, and not a field
    return result
