"""A plain loop, and scalars in files of TensorBoard and Weights & Biases, read back by their own readers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from recorded_marks import marks

from tidemark.integrations.plain import steps
from tidemark.integrations.scalars import memory_scalars, write_scalars


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def test_resident_memory_is_that_of_the_kernel() -> None:
    ballast = b"x" * (64 << 20)
    mib = memory_scalars()["memory/rss_mib"]
    assert mib == pytest.approx(status("VmRSS") / 1024, abs=8)
    del ballast
    assert memory_scalars()["memory/rss_mib"] < mib - 56


def test_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    told = marks(monkeypatch)
    written: list[tuple[int, list[str]]] = []

    def writer(scalars: dict[str, float], step: int) -> None:
        written.append((step, sorted(scalars)))

    for item in steps("abcd", name="epoch 0", writer=writer, every=2, first=10):
        told.append(item)
    step = ["step {", "} step"]
    assert told == ["epoch 0", *(each for item in "abcd" for each in (step[0], item, step[1]))]
    assert [number for number, _ in written] == [11, 13] and "memory/rss_mib" in written[0][1]


def test_a_loop_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    told = marks(monkeypatch)
    with pytest.raises(KeyError):
        for _ in steps(range(3)):
            raise KeyError
    for _ in steps(range(3)):
        break
    assert told == ["step {", "} step"] * 2
    with pytest.raises(ValueError, match="every"):
        steps([], every=0)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path))
    write_scalars([writer, None], {"memory/cuda:0/peak_mib": 1.5}, 3)
    write_scalars(writer, {"memory/cuda:0/peak_mib": 2.5}, 4)
    writer.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(each.step, each.value) for each in events.Scalars("memory/cuda:0/peak_mib")] == [(3, 1.5), (4, 2.5)]


def records_of(content: bytes) -> list[bytes]:
    """The records of a .wandb file: LevelDB's log format (blocks of 32 KiB; checksum, length, type) after a 7-byte header."""
    found: list[bytes] = []
    position, data = 7, b""
    while position + 7 <= len(content):
        left = 32768 - position % 32768
        if left < 7:
            position += left
            continue
        length, kind = struct.unpack_from("<HB", content, position + 4)
        data += content[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last part
            found.append(data)
            data = b""
    return found


def test_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb: Any = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="tidemark")
    write_scalars(run, {"memory/cuda:0/peak_mib": 1.5}, 3)
    run.finish()
    wandb.teardown()  # ends the process that writes the file
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    found = {}
    for data in records_of(path.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        for item in record.history.item:
            found[item.key or "/".join(item.nested_key)] = item.value_json
    assert float(found["memory/cuda:0/peak_mib"]) == 1.5 and int(found["_step"]) == 3


def test_another_kind_of_writer() -> None:
    with pytest.raises(TypeError, match="int is no writer"):
        write_scalars(3, {}, 0)
