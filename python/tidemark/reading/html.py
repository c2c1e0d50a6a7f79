"""Results with tables, as tables for notebooks, made from their JSON."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from tidemark import _html
from tidemark._sizes import bytes_text

#: The keys of columns, in the order of the columns, and the columns' titles.
_COLUMNS = {
    "stack": "call site",
    "category": "category",
    "component": "component",
    "layer": "layer",
    "module": "module",
    "phase": "phase",
    "step": "step",
    "block_bytes": "size",
    "annotation": "annotation",
    "thread_name": "thread",
    "tid": "thread id",
    "stream": "stream",
    "pool": "pool",
    "device": "device",
    "classification": "kind",
    "confidence": "confidence",
    "bytes": "bytes",
    "bytes_per_step": "bytes each step",
    "share": "share",
    "block_count": "blocks",
    "allocation_count": "allocations",
    "largest_bytes": "largest",
    "held_bytes": "held",
    "held_block_count": "blocks held",
}
#: Lists by owner, and the key of the owner; it is null if unknown.
_OWNERS = {
    "categories": "category",
    "components": "component",
    "layers": "layer",
    "modules": "module",
    "phases": "phase",
}
#: Lists that repeat rows of others.
_LEFT_OUT = {"groups", "steps", "issues"}


def tables(document: dict[str, Any]) -> str:
    """The lists of a result, each as a table below its subject; then the missing data of the recording."""
    parts = list(_tables_in(document))
    parts += [f"<p>{escape(issue['text'])}</p>" for issue in document["data_quality"]["issues"]]
    return "".join(parts)


def _tables_in(document: dict[str, Any]) -> Iterator[str]:
    for key, rows in document.items():
        if key in _LEFT_OUT or not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
            continue
        if any(isinstance(value, list) and name not in _COLUMNS and name != "parts" for name, value in rows[0].items()):
            for section in rows:  # such as a device, with its own lists
                yield _heading(section)
                yield from _tables_in(section)
        else:
            yield _table(key, rows)
            more = _more(document, key)
            if more:
                yield f"<p>({more:,} more)</p>"


def _more(document: dict[str, Any], key: str) -> int:
    """The number of rows omitted from a list."""
    others = document.get(f"other_{key}")
    count = others["count"] if others else document.get(f"other_{key[:-1] if key.endswith('s') else key}_count")
    return int(count or 0)


def _heading(section: dict[str, Any]) -> str:
    sizes = [(key, value) for key, value in section.items() if key.endswith("_bytes") and value]
    figures = ", ".join(f"{_words(key[: -len('_bytes')])} {bytes_text(value)}" for key, value in sizes)
    device = section.get("device")
    return f"<p>{f'<b>{escape(device)}</b>: ' if device else ''}{escape(figures)}</p>"


def _table(key: str, rows: list[dict[str, Any]]) -> str:
    owner = _OWNERS.get(key)
    columns = [name for name in _COLUMNS if name == owner or any(row.get(name) is not None for row in rows)]
    cells = [[_cell(name, row.get(name)) for name in columns] for row in rows]
    return _html.table([_COLUMNS[name] for name in columns], cells, None if key == "rows" else _words(key))


def _cell(name: str, value: Any) -> str:
    if value is None:
        return f"(no {name})" if name in _OWNERS.values() else ""
    if isinstance(value, dict):
        return str(value["label"])
    if name.endswith("bytes") or name == "bytes_per_step":
        return bytes_text(round(value))
    if name == "share":
        return f"{value:.1%}"
    if name in ("classification", "category", "phase", "confidence"):
        return _words(str(value))
    return f"{value:,}" if name.endswith("count") else str(value)


def _words(key: str) -> str:
    return key.replace("_", " ")
