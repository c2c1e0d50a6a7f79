"""A recording's blocks and events as tables that pyarrow, pandas, polars and DuckDB read without a copy if possible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidemark import _engine

_PREVIEW = 10


class ArrowTable:
    """A table with the Arrow C stream and array interfaces: ``pyarrow.table(x)``, ``polars.DataFrame(x)``, ``duckdb.sql("from
    x")``, ``pandas.DataFrame.from_arrow(x)`` (pandas 3).

    Numbers are int64 (sizes in bytes, times in nanoseconds from the recording's start), addresses and streams uint64, texts
    dictionary-encoded; unknown values are null. The recording stays in memory as long as any object made from it.
    """

    def __init__(self, handle: _engine.Table, name: str) -> None:
        self._handle = handle
        self._name = name
        self._rows, self._columns = _engine.describe_table(handle)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, row: int) -> dict[str, Any]:
        """A row by its number, from the end if that is negative. IndexError if there is no such row."""
        number = row + self._rows if row < 0 else row
        return dict(zip(self._columns, _engine.rows(self._handle, number, number + 1)[0]))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows as dicts. For many of them, pass the table to a data-frame library."""
        for begin in range(0, self._rows, 1000):
            for cells in _engine.rows(self._handle, begin, min(begin + 1000, self._rows)):
                yield dict(zip(self._columns, cells))

    def __repr__(self) -> str:
        return f"<tidemark {self._name}: {self._rows:,} rows; columns {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        from tidemark._html import table

        rows = _engine.rows(self._handle, 0, min(_PREVIEW, self._rows))
        more = f"<p>{self._rows:,} rows</p>" if self._rows > len(rows) else ""
        return table(self._columns, [[_cell(cell) for cell in row] for row in rows]) + more

    def __arrow_c_schema__(self) -> object:
        return _engine.arrow_schema(self._handle)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _engine.arrow_schema(self._handle), _engine.arrow_array(self._handle)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _engine.arrow_stream(self._handle, 0)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    return text if len(text) <= 60 else "…" + text[-59:]
