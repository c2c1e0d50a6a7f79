"""Recording from inside a process: sizes, lines and categories compared with PyTorch and with arithmetic."""

from __future__ import annotations

import inspect
import os
import resource
import threading
import time
import warnings
from pathlib import Path

import pytest
from recordings import MIB, cpu, issues, read

import tidemark

torch = pytest.importorskip("torch")


def line_of(text: str) -> int:
    """The number of the line of this file that contains the text."""
    return next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


def test_a_tensor_is_seen_with_its_size_and_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    with tidemark.record(path) as recording:
        assert tidemark.is_recording()
        tensor = torch.empty(64 * MIB, dtype=torch.uint8)  # of 64 MiB
        assert recording.path == str(path)
    assert not tidemark.is_recording()
    assert recording.paths == [str(path)]
    summary = read(path)
    device = cpu(summary)
    assert device["peak_allocated_bytes"] == tensor.untyped_storage().nbytes() == 64 * MIB
    frame = device["call_sites_at_peak"][0]["stack"]["frames"][-1]
    assert (frame["file"], frame["line"]) == (__file__, line_of("# of 64 MiB"))
    assert summary["data_quality"]["complete"]
    assert issues(summary) == ["started_inside"]


def test_the_peak_is_what_was_held_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    before = torch.empty(5 * MIB, dtype=torch.uint8)
    with tidemark.record(path, samples=False):
        first = torch.empty(10 * MIB, dtype=torch.uint8)
        second = torch.empty(20 * MIB, dtype=torch.uint8)
        del first, before
        third = torch.empty(4 * MIB, dtype=torch.uint8)
    device = cpu(read(path))
    assert device["peak_allocated_bytes"] == 30 * MIB
    assert device["end_allocated_bytes"] == second.nbytes + third.nbytes == 24 * MIB
    assert device["unmatched_free_count"] == 1  # memory that was allocated before


def test_categories_of_a_training_step(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
    weights = sum(parameter.nbytes for parameter in model.parameters())
    with tidemark.record(path):
        copy = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
        optimizer = torch.optim.SGD(copy.parameters(), momentum=0.9, lr=0.1)
        for _ in range(3):
            with tidemark.step():
                optimizer.zero_grad(set_to_none=True)
                copy(torch.ones(8, 512)).square().mean().backward()
                optimizer.step()
    rows = cpu(read(path, "breakdown", "--at", "end"))["categories"]
    held = {row["category"]: row["bytes"] for row in rows}
    assert {name: held.get(name) for name in ("parameter", "gradient", "optimizer_state")} == {
        "parameter": weights,
        "gradient": weights,
        "optimizer_state": weights,
    }


def test_marks_ranges_and_pauses(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"

    @tidemark.range("evaluation")
    def evaluate() -> torch.Tensor:
        return torch.empty(2 * MIB, dtype=torch.uint8)

    with tidemark.record(path, attribute=False):
        first = torch.empty(MIB, dtype=torch.uint8)
        tidemark.mark("epoch 1")
        second = evaluate()
        tidemark.pause()
        assert tidemark.is_recording()
        unseen = torch.empty(8 * MIB, dtype=torch.uint8)
        time.sleep(0.02)
        tidemark.resume()
        with tidemark.range("after"):
            third = torch.empty(4 * MIB, dtype=torch.uint8)
    assert read(path, "table", "--at", "epoch 1")["sections"][0]["allocated_bytes"] == first.nbytes
    rows = read(path, "table", "--by", "annotation", "--at", "end")["sections"][0]["rows"]
    assert {row["annotation"]: row["bytes"] for row in rows if row["annotation"]} == {
        "evaluation": second.nbytes,
        "after": third.nbytes,
    }
    summary = read(path)
    assert cpu(summary)["peak_allocated_bytes"] == 7 * MIB == first.nbytes + second.nbytes + third.nbytes < unseen.nbytes
    assert summary["data_quality"]["complete"] and "paused" in issues(summary)
    pauses = read(path, "timeline")["pauses"]
    assert len(pauses) == 1 and pauses[0]["end_ns"] - pauses[0]["begin_ns"] >= 20_000_000


def test_an_exception_passes_and_the_recording_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    error = KeyError("of the program")
    with pytest.raises(KeyError) as caught, tidemark.record(path), tidemark.range("work"):
        kept = torch.empty(MIB, dtype=torch.uint8)
        raise error
    assert caught.value is error
    summary = read(path)
    assert cpu(summary)["end_allocated_bytes"] == kept.nbytes
    assert summary["data_quality"]["complete"]


def test_threads_that_allocate_while_recordings_begin_and_end(tmp_path: Path) -> None:
    """Each recording has exactly the main thread's events, however many threads are in the middle of an event."""
    done = threading.Event()

    def allocate() -> None:
        while not done.is_set():
            torch.empty(1000)

    threads = [threading.Thread(target=allocate) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(5):
            path = tmp_path / f"{number}.tide"
            with tidemark.record(path, samples=False):
                torch.empty((number + 1) * MIB, dtype=torch.uint8)
            summary = read(path)
            assert summary["data_quality"]["complete"]
            assert set(issues(summary)) <= {"started_inside", "unmatched_frees"}
            largest = read(path, "table", "--by", "size", "--at", "peak")["sections"][0]["rows"][0]
            assert largest["bytes"] == (number + 1) * MIB
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_two_at_once_are_an_error_and_one_after_the_other_are_not(tmp_path: Path) -> None:
    tidemark.start(tmp_path / "one.tide")
    with pytest.raises(tidemark.TidemarkError, match=r"is being recorded already, to .*one\.tide: tidemark\.stop\(\) ends"):
        tidemark.start(tmp_path / "two.tide")
    assert tidemark.stop() == [str(tmp_path / "one.tide")]
    assert tidemark.stop() == []
    assert tidemark.start(tmp_path / "two.tide").stop() == [str(tmp_path / "two.tide")]
    assert cpu_or_none(tmp_path / "two.tide") is None


def cpu_or_none(path: Path) -> dict[str, object] | None:
    return next((device for device in read(path)["devices"] if device["device"] == "cpu"), None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/run.tide", "nowhere: cannot write to this folder: No such file or directory"),
        ("/dev/full", "/dev/full: .*"),
        ("taken.tide", r"taken\.tide: already exists"),
    ],
)
def test_what_cannot_be_written_is_an_error_that_names_it(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "taken.tide").write_text("somebody's")
    with pytest.raises(tidemark.TidemarkError, match=message):
        tidemark.start(tmp_path / name)
    assert not tidemark.is_recording()
    assert tidemark.start(tmp_path / "taken.tide", force=True).stop() == [str(tmp_path / "taken.tide")]


def test_a_wrong_option_is_an_error_that_says_what_is_right(tmp_path: Path) -> None:
    with pytest.raises(tidemark.TidemarkError) as caught:
        tidemark.start(tmp_path / "run.tide", stacks="deep")
    assert str(caught.value) == "--stacks: invalid value 'deep' (expected none, python, native or both)"


def test_a_full_disk_ends_the_recording_not_the_program(tmp_path: Path) -> None:
    """A file-size limit simulates it; the memory shared with the recorder is below the limit, the recording is not."""
    path = tmp_path / "run.tide"
    recording = tidemark.start(path, samples=False)
    recorder = recording._recorder
    assert recorder is not None
    resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
    for size in range(1, 50_000):
        torch.empty(size)
    with pytest.raises(tidemark.TidemarkError, match=r"run\.tide: the recording is not complete: .*File too large"):
        tidemark.stop()
    assert [file.failed for file in recording.files] == [True]
    assert not tidemark.is_recording()
    assert path.stat().st_size <= 20_000
    assert {"disk", "recorder_killed"} & set(issues(read(path)))


def test_a_forked_child_has_a_recording_of_its_own(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about fork() with several threads
        with tidemark.record(tmp_path / "run.tide", samples=False) as recording:
            parent = torch.empty(2 * MIB, dtype=torch.uint8)
            pid = os.fork()
            if pid == 0:
                torch.empty(3 * MIB, dtype=torch.uint8)
                os._exit(0 if tidemark.is_recording() and not tidemark.stop() else 1)
            assert os.waitpid(pid, 0)[1] == 0
    assert [file.pid for file in recording.files] == [os.getpid(), pid]
    own, child = recording.paths
    assert cpu(read(own))["peak_allocated_bytes"] == parent.nbytes
    assert cpu(read(child))["peak_allocated_bytes"] == 3 * MIB


def test_public_names_have_signatures() -> None:
    assert str(inspect.signature(tidemark.mark)) == "(name, /)"
    assert "sample_interval" in inspect.signature(tidemark.record).parameters
    assert inspect.signature(tidemark.start).parameters.keys() == inspect.signature(tidemark.record).parameters.keys()
