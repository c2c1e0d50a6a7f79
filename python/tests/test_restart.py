"""The verdict on a restart in the files that launchers read: written by PyTorch's own handler, and read by its own agent."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from torch.distributed.elastic.multiprocessing.errors import ErrorHandler, ProcessFailure, record

import tidemark.restart
from tidemark._errors import TidemarkError

LEAK = Path(__file__).parents[2] / "tests" / "data" / "snapshots" / "oom_leak.pickle.xz"


def failure_in(path: Path) -> ProcessFailure:
    return ProcessFailure(local_rank=0, pid=1, exitcode=1, error_file=str(path))


def test_the_verdict_of_a_snapshot_that_leaked() -> None:
    verdict = tidemark.restart.judge_restart(LEAK)
    assert (verdict.will_recur, verdict.reason) == ("yes", "leak")
    assert verdict.first is not None and verdict.first.end == "out_of_memory"
    assert verdict.changes[0].detail == "stop_leak" and verdict.changes[0].enough is True
    assert str(verdict).startswith(verdict.message)
    assert verdict.to_dict()["will_recur"] == "yes"
    with pytest.raises(TidemarkError, match=r"missing\.tide: no such file"):
        tidemark.restart.judge_restart(["missing.tide"])
    with pytest.raises(TidemarkError, match="name recordings"):
        tidemark.restart.judge_restart([])


def test_an_error_file_of_torchrun_keeps_its_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    try:
        raise RuntimeError("CUDA out of memory")
    except RuntimeError as error:
        ErrorHandler().record_exception(error)
    before = json.loads(path.read_text())
    verdict = tidemark.restart.judge_restart(LEAK)
    assert tidemark.restart.write_error_file(verdict)
    after = json.loads(path.read_text())
    added = after["message"]["extraInfo"].pop("tidemark")
    assert (added["will_recur"], added["at_step"]) == ("yes", verdict.at_step)
    assert added["changes"][0]["detail"] == "stop_leak"
    stack = after["message"]["extraInfo"].pop("py_callstack")
    assert stack == before["message"]["extraInfo"].pop("py_callstack").rstrip("\n") + f"\nTidemark: {verdict.message}"
    assert after == before
    assert failure_in(path).timestamp == int(before["message"]["extraInfo"]["timestamp"])


def test_other_forms_of_error_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    verdict = tidemark.restart.judge_restart(LEAK)
    assert not tidemark.restart.write_error_file(verdict), "no file is known"
    path = tmp_path / "error.json"
    assert tidemark.restart.write_error_file(verdict, path), "a file that is missing is made"
    assert verdict.message in failure_in(path).message["message"]
    path.write_text(json.dumps({"message": "failed", "timestamp": 12}))
    assert tidemark.restart.write_error_file(verdict, path)
    assert failure_in(path).message == f"failed\nTidemark: {verdict.message}"
    assert failure_in(path).timestamp == 12
    for other in ("no JSON", "[]", '{"message": 3}', '{"message": {"message": "no more"}}'):
        path.write_text(other)
        assert not tidemark.restart.write_error_file(verdict, path)
        assert path.read_text() == other
    assert [entry.name for entry in tmp_path.iterdir()] == ["error.json"]


def test_the_handler_of_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    def out_of_memory() -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with pytest.raises(RuntimeError, match="out of memory"):
        record(out_of_memory, error_handler=tidemark.restart.error_handler(LEAK))()
    assert json.loads(path.read_text())["message"]["extraInfo"]["tidemark"]["will_recur"] == "yes"

    def other() -> None:
        raise RuntimeError("no rendezvous")

    with pytest.raises(RuntimeError, match="rendezvous"):
        record(other, error_handler=tidemark.restart.error_handler(LEAK))()
    assert "tidemark" not in json.loads(path.read_text())["message"]["extraInfo"]
    with pytest.raises(RuntimeError, match="out of memory"):
        record(out_of_memory, error_handler=tidemark.restart.error_handler(tmp_path / "none.tide", patience=0))()
    assert "none.tide: no such file" in capfd.readouterr().err


def test_a_termination_message_fits(tmp_path: Path) -> None:
    verdict = tidemark.restart.judge_restart(LEAK)
    path = tmp_path / "termination-log"
    tidemark.restart.write_termination_message(verdict, path)
    assert path.read_text().startswith(verdict.message)
    tidemark.restart.write_termination_message(dataclasses.replace(verdict, message="a" + 2000 * "\U0001f525"), path)
    assert path.stat().st_size == 1 + 1023 * 4, "cut between two characters, at most 4,096 bytes"
    assert path.read_text() == "a" + 1023 * "\U0001f525"


def test_the_module_as_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    output, message = tmp_path / "restart.json", tmp_path / "termination-log"
    assert tidemark.restart.main([str(LEAK), "-o", str(output), "--termination-message", str(message)]) == 0
    assert json.loads(output.read_text())["will_recur"] == "yes"
    assert message.read_text().strip() == capsys.readouterr().out.strip()
    error_file = tmp_path / "error.json"
    error_file.write_text("no JSON")
    assert tidemark.restart.main([str(LEAK), "--error-file", str(error_file)]) == 2
    assert "not an error file of torchrun" in capsys.readouterr().err
    assert tidemark.restart.main([str(tmp_path / "none.tide")]) == 2
