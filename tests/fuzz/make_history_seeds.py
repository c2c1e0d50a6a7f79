"""Writes the seeds of history_fuzz: small history files, as made by monitors and other programs.

    make_history_seeds.py FOLDER        FOLDER is usually tests/fuzz/corpus/history

The tables are exactly those of src/publish/history/database.cpp.
"""

import re
import sqlite3
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_800_000_000_000
APPLICATION = 0x54494445  # "TIDE"


def tables():
    """The statements of database.cpp, from its string literals."""
    source = (ROOT / "src/publish/history/database.cpp").read_text()
    literals = re.findall(r"\{\"\w+\",\s*((?:\"[^\"]*\"\s*)+)\}", source)
    return ["".join(re.findall(r"\"([^\"]*)\"", literal)) for literal in literals]


def make(path, rows=(), risks=(), series=((1, "GPU-1", "0", "H100", 0, ""),), version=1, statements=(), journal="delete"):
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA page_size=512")
    database.execute("PRAGMA auto_vacuum=INCREMENTAL")
    for table in tables():
        database.execute(table)
    database.execute(f"PRAGMA application_id={APPLICATION}")
    database.execute(f"PRAGMA user_version={version}")
    database.executemany("INSERT INTO series VALUES(?, ?, ?, ?, ?, ?)", series)
    database.executemany("INSERT INTO points VALUES(?, ?, ?, ?, ?, ?, ?)", rows)
    database.executemany("INSERT INTO risks VALUES(?, ?, ?, ?, ?, ?)", risks)
    for statement in statements:
        database.execute(statement)
    database.execute(f"PRAGMA journal_mode={journal}")
    database.close()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    assert len(tables()) == 3
    series = [
        (1, "GPU-1", "0", "H100", 0, ""),
        (2, "GPU-1", "0", "H100", 42, "python train.py"),
        (3, "host", "cpu", "", 0, ""),
    ]
    rows = [
        (1 + n % 3, NOW - 60_000 + n // 3 * 1000, 1000, 900 + n, 400 + n, 1, 1000 if n % 3 == 0 else None) for n in range(30)
    ]
    risk = (NOW - 5000, "GPU-1", "0", "low", "high", '{"risk_assessment": {"risk_level": "high"}}')
    make(folder / "usual.db", rows, [risk], series)
    make(folder / "wal.db", rows[:6], [risk], series, journal="wal")
    make(folder / "nothing_seen.db", series=())
    make(folder / "newer.db", rows[:3], series=series, version=2)
    numbers = [-(2**63), 2**63 - 1, -1, 0, 2**53 + 1, "text", b"\xff\x00blob", 1.5e300]
    hostile = [(1, NOW + n, number, number, number, number, number) for n, number in enumerate(numbers)]
    hostile += [(3, time, 1, 1, 1, 1, 1) for time in (-(2**63), 2**63 - 1)]
    names = [(1, b"\xff\xfe", "0", "\x1b[2J", 0, ""), (3, "\x00", "k" * 300, "\ud7ff", 0, ""), (4, "x", "0", "", -5, b"\x80")]
    make(folder / "hostile_values.db", hostile, [(2**63 - 1, b"\xff", "", "low", "worst", "[" * 200)], names)
    make(folder / "a_view.db", series=series, statements=["DROP TABLE risks", "CREATE VIEW risks AS SELECT 1 AS time"])
    (folder / "empty.db").write_bytes(b"")
    (folder / "text.db").write_bytes(b"no database at all, but long enough to be mutated\n" * 4)
    (folder / "torn.db").write_bytes((folder / "usual.db").read_bytes()[:2100])


if __name__ == "__main__":
    main()
