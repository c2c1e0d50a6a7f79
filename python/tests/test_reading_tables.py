"""Blocks and events as Arrow tables and Parquet files: read by other libraries, compared with the CSV export and each other."""

from __future__ import annotations

import gc
import itertools
from html import escape
from pathlib import Path
from typing import Any

import pytest
from reading_files import SNAPSHOTS, command, csv_of, golden_recordings

import tidemark
from tidemark import _engine

duckdb = pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

OWNERS = ["category", "category_confidence", "phase", "component", "module"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden_recordings(tmp_path_factory.mktemp("recordings"))


def paths(folder: Path) -> list[Path]:
    """With owners, GPUs and a job's rank; hostile names; no events; streams, pools and annotations; cut at its beginning."""
    recordings = [folder / f"{name}.tide" for name in ("layers", "training", "hostile", "empty", "marked")]
    return [*recordings, *(SNAPSHOTS / f"{name}.pickle.xz" for name in ("streams", "private_pools", "late"))]


def fields(row: dict[str, Any]) -> dict[str, str]:
    """A row as the CSV export writes it; formulas have a quote before them there."""

    def field(name: str, value: Any) -> str:
        if value is None:
            return ""
        text = hex(value) if name == "address" else str(value)
        return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@") else text

    return {name: field(name, value) for name, value in row.items()}


def test_blocks_are_those_of_the_csv_export(folder: Path) -> None:
    for path in paths(folder):
        table = tidemark.read(path).blocks
        arrow = pa.table(table)
        arrow.validate(full=True)
        rows = arrow.to_pylist()
        expected = csv_of(path)
        assert len(table) == len(expected)
        names = list(expected[0]) if expected else []  # for snapshots without owners, which are derived from stacks here
        assert [{name: fields(row)[name] for name in names} for row in rows] == expected
        assert list(table) == rows
        assert table.column_names == arrow.column_names
        assert arrow.column_names[-5:] == OWNERS


def test_other_libraries_read_the_same(folder: Path) -> None:
    for path in paths(folder):
        blocks = tidemark.read(path).blocks
        rows = pa.table(blocks).to_pylist()
        assert pl.DataFrame(blocks).to_dicts() == rows
        found = duckdb.sql("from blocks")
        assert [dict(zip(found.columns, row)) for row in found.fetchall()] == rows
        if hasattr(pd.DataFrame, "from_arrow"):
            assert list(pd.DataFrame.from_arrow(blocks)["size_bytes"]) == [row["size_bytes"] for row in rows]


def test_parquet_files_are_read_by_three_libraries(folder: Path, tmp_path: Path) -> None:
    for path in paths(folder):
        file = tmp_path / f"{path.name}.parquet"
        command("export", path, "--to", "parquet", "-o", file)
        arrow = pq.read_table(file)
        rows = pa.table(tidemark.read(path).blocks).to_pylist()
        assert arrow.to_pylist() == rows
        assert arrow.schema.field("address").type == pa.uint64()
        assert arrow.schema.field("size_bytes").type == pa.int64()
        assert pl.read_parquet(file).to_dicts() == rows
        found = duckdb.sql(f"from '{file}'")
        assert [dict(zip(found.columns, row)) for row in found.fetchall()] == rows


def test_parquet_files_of_chosen_blocks(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "activations.parquet"
    command("export", folder / "layers.tide", "--to", "parquet", "--category", "activation", "-o", file)
    blocks = pa.table(tidemark.read(folder / "layers.tide").blocks).to_pylist()
    chosen = [row for row in blocks if row["category"] == "activation"]
    assert 0 < len(chosen) < len(blocks)
    assert pq.read_table(file).to_pylist() == chosen


def test_columns_of_the_store_are_not_copied() -> None:
    run = tidemark.read(SNAPSHOTS / "default.pickle.xz")

    def address(name: str) -> int:
        values = pa.table(run.blocks)[name].chunk(0).buffers()[1]
        return int(values.address)

    for name in ("address", "size_bytes", "requested_bytes"):
        assert address(name) == address(name)


def test_a_table_outlives_its_recording(folder: Path) -> None:
    run = tidemark.read(folder / "layers.tide")
    arrow, stream = pa.table(run.blocks), run.blocks.__arrow_c_stream__()
    expected = arrow.to_pylist()
    del run
    gc.collect()
    assert arrow.to_pylist() == expected
    del arrow, stream  # a stream that was not read
    gc.collect()


def test_batches_add_up() -> None:
    table = tidemark.read(SNAPSHOTS / "streams.pickle.xz").blocks

    class Batches:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return _engine.arrow_stream(table._handle, 100)

    arrow = pa.table(Batches())
    assert arrow["stack"].num_chunks == -(-len(table) // 100) > 1
    assert arrow.to_pylist() == pa.table(table).to_pylist()
    assert pl.DataFrame(Batches()).to_dicts() == pl.DataFrame(table).to_dicts()


def test_the_array_interface_gives_all_rows(folder: Path) -> None:
    table = tidemark.read(folder / "layers.tide").blocks
    batch = pa.record_batch(table)
    assert batch.to_pylist() == pa.table(table).to_pylist()
    assert pa.schema(table) == batch.schema


def test_blocks_at_a_moment_are_what_was_allocated_then(folder: Path) -> None:
    for path in (folder / "layers.tide", SNAPSHOTS / "default.pickle.xz"):
        run = tidemark.read(path)
        blocks = pa.table(run.at("peak").blocks).to_pylist()
        for device in run.summary().devices:
            held = sum(row["size_bytes"] for row in blocks if row["device"] == device.device)
            assert held == device.peak_allocated_bytes - device.unrecorded_at_peak_bytes
        end = run.at("end").blocks
        assert sum(row["size_bytes"] for row in end) == sum(device.end_recorded_bytes for device in run.summary().devices)
        assert all(row["freed_at_ns"] is None for row in end)
        one = run.at("end", device=run.summary().devices[0].device).blocks
        assert len(one) <= len(end)
    with pytest.raises(ValueError, match="at: invalid time"):
        _ = run.at("5 o'clock").blocks


def test_events_replay_to_the_peak() -> None:
    run = tidemark.read(SNAPSHOTS / "default.pickle.xz")
    events = pa.table(run.events).to_pylist()
    steps = (row["size_bytes"] if row["event"] == "allocation" else -row["size_bytes"] for row in events)
    assert max(itertools.accumulate(steps)) == run.summary().devices[0].peak_allocated_bytes
    assert [row["time_ns"] for row in events] == sorted(row["time_ns"] for row in events)
    blocks = pa.table(run.blocks).to_pylist()
    for row in events:
        block = blocks[row["block"]]
        assert row["time_ns"] == block["allocated_at_ns" if row["event"] == "allocation" else "freed_at_ns"]
        assert row["stack"] == block["stack"]


def test_rows_without_any_library(folder: Path) -> None:
    table = tidemark.read(folder / "layers.tide").blocks
    rows = list(table)
    assert len(rows) == len(table)
    assert table[0] == rows[0]
    assert table[-1] == rows[-1]
    with pytest.raises(IndexError):
        table[len(table)]
    html = table._repr_html_()
    assert html.count("<tr>") == 1 + min(10, len(table))
    hostile = tidemark.read(folder / "hostile.tide").blocks
    assert '"quoted"' in hostile[0]["call_site"]
    assert '"quoted"' not in hostile._repr_html_()
    assert escape('"quoted"') in hostile._repr_html_()
    assert f"{len(table):,} rows" in repr(table)
