"""A preflight: programs that get their longest batches first, and end after them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpu_programs import GPU_PYTHON, needs_gpu, on_gpu
from long_texts import Buckets, Texts, collate

import tidemark
from tidemark.preflight import __main__ as preflight
from tidemark.preflight.report import report

torch = pytest.importorskip("torch")

PACKAGE = Path(str(tidemark.__file__)).parents[1]
TESTS = Path(__file__).parent


class Ended(BaseException):
    """In place of the end of the process."""


class Inside:
    """The part in the program, in this process: its loaders, and its results."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, epochs: int = 1) -> None:
        from tidemark.preflight import inside

        class Loader(torch.utils.data.DataLoader):  # type: ignore[misc]
            pass

        def end(code: int) -> None:
            raise Ended

        for owner, name in ((sys, "excepthook"), (torch.autograd, "backward")):
            monkeypatch.setattr(owner, name, getattr(owner, name))  # restored afterwards
        monkeypatch.setattr(os, "_exit", end)
        monkeypatch.setattr(inside.atexit, "register", lambda call: None)
        monkeypatch.setenv("RANK", "3")
        self.Loader = Loader
        self._folder = folder
        inside.begin(SimpleNamespace(DataLoader=Loader), json.dumps({"folder": str(folder), "epochs": epochs, "seconds": 60.0}))

    def results(self) -> Any:
        (path,) = self._folder.glob("*.json")
        return json.loads(path.read_text())


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inside]:
    from torch.optim.optimizer import _global_optimizer_post_hooks as hooks

    before = dict(hooks)
    yield Inside(tmp_path, monkeypatch)
    hooks.clear()
    hooks.update(before)


class Model:
    """Counts the shapes that it trains with."""

    def __init__(self) -> None:
        self.layer = torch.nn.Embedding(256, 1)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.1)
        self.shapes: list[tuple[int, int]] = []

    def backward(self, batch: Any) -> None:
        self.shapes.append(tuple(batch.shape))
        self.layer(batch).square().mean().backward()

    def train(self, batch: Any) -> None:
        self.backward(batch)
        self.optimizer.step()
        self.optimizer.zero_grad()


def buckets(inside: Any) -> tuple[Any, tuple[int, int], tuple[int, int]]:
    """A loader, and the shapes of its batches with the most tokens times length, and with the most tokens."""
    texts = Texts()
    sampler = Buckets(texts.sizes, tokens=300)
    shapes = [(len(batch), max(texts.sizes[index] for index in batch)) for batch in sampler.batches]
    scores = max(shapes, key=lambda shape: (shape[0] * shape[1] ** 2, shape[0] * shape[1]))
    tokens = max(shapes, key=lambda shape: (shape[0] * shape[1], shape[0] * shape[1] ** 2))
    assert scores != tokens
    return inside.Loader(texts, batch_sampler=sampler, collate_fn=collate), scores, tokens


def test_a_training_ends_after_its_longest_batches(inside: Inside) -> None:
    loader, scores, tokens = buckets(inside)
    model = Model()
    with pytest.raises(Ended):
        for batch in loader:
            model.train(batch)
    assert model.shapes == [scores] * 2 + [tokens] * 3
    results = inside.results()
    assert (results["ended"], results["steps"], results["rank"], results["out_of_memory"]) == ("complete", 5, 3, False)
    (told,) = results["loaders"]
    assert told["training"] and told["problem"] is None
    assert [(one["samples"], one["length"], one["given"]) for one in told["longest"]] == [(*scores, 2), (*tokens, 3)]
    text, verdict = report([results], 0, False)
    assert verdict == 0
    assert text.startswith("Fits: 5 optimizer steps with the longest batches; memory was not measured, without a CUDA device")
    assert f"  most tokens times length: {scores[0]} samples of length {scores[1]} (batch " in text


def test_a_loop_that_accumulates_and_reads_ahead(inside: Inside) -> None:
    """As Trainers do: each optimizer step has four batches, which are read together."""
    loader, scores, tokens = buckets(inside)
    model = Model()
    iterator = iter(loader)
    ahead = next(iterator)
    with pytest.raises(Ended):
        while True:
            batches = [ahead, *(next(iterator) for _ in range(3))]
            ahead = next(iterator)
            for batch in batches:
                model.backward(batch)
            model.optimizer.step()
            model.optimizer.zero_grad()
    assert model.shapes[4:8] == [scores] * 4, "with the optimizer's state"
    assert model.shapes[-4:] == [tokens] * 4


def test_an_evaluation_before_the_training(inside: Inside) -> None:
    texts = Texts(count=64, seed=2)
    evaluation = inside.Loader(texts, batch_size=4, collate_fn=collate)
    loader, _, tokens = buckets(inside)
    with torch.no_grad():
        seen = [batch.shape for batch in evaluation]
    assert len(seen) == 4 and max(shape[1] for shape in seen) == max(texts.sizes)
    assert len([batch.shape for batch in evaluation]) == 16, "it may be a training that collects batches first"
    for number, _ in enumerate(evaluation):
        if number == 1:
            break  # a check of the evaluation's code
    model = Model()
    with pytest.raises(Ended):
        for batch in loader:
            model.train(batch)
            with torch.no_grad():
                next(iter(evaluation))
    assert model.shapes[-1] == tokens
    assert [one["training"] for one in inside.results()["loaders"]] == [False, True]


def test_two_loaders_of_one_training(inside: Inside) -> None:
    loader, scores, _ = buckets(inside)
    other = inside.Loader(Texts(seed=5), batch_size=3, collate_fn=collate)
    model = Model()
    with pytest.raises(Ended):
        for first, second in zip(loader, other):
            model.backward(second)
            model.train(first)
    assert model.shapes[1::2][:2] == [scores] * 2
    assert all(one["training"] for one in inside.results()["loaders"])


def test_batches_that_have_no_order_run_as_they_come(inside: Inside) -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter(range(100))

    model = Model()
    with pytest.raises(Ended):
        for batch in inside.Loader(Stream(), batch_size=2):
            model.train(batch[:, None])
    results = inside.results()
    assert len(model.shapes) == 5 and "batches of indexes" in results["loaders"][0]["problem"]
    text, verdict = report([results], 0, False)
    assert (verdict, text.splitlines()[0]) == (2, "Unknown: the longest batches of a loader were not found.")


def test_a_training_without_an_optimizer_of_pytorch(inside: Inside) -> None:
    loader, *_ = buckets(inside)
    model = Model()
    with pytest.raises(Ended):
        for batch in loader:
            model.backward(batch)
    assert len(model.shapes) == 256


def result(**values: Any) -> dict[str, Any]:
    batch = {"epoch": 0, "number": 7, "samples": 8, "length": 640, "compared": 40, "given": 2}
    loader = {"number": 1, "training": True, "problem": None, "batches": 1200, "longest": [batch, batch]}
    device = {"number": 1, "name": "NVIDIA L4", "allocated": 3 << 30, "reserved": 5 << 30, "available": 21 << 30, "failures": 0}
    usual = {"rank": 0, "world_size": 1, "pid": 1, "ended": "complete", "error": None, "out_of_memory": False, "steps": 5}
    return {**usual, "loaders": [loader], "devices": [device], **values}


def test_verdicts() -> None:
    def first(*results: dict[str, Any], code: int = 0, planned: bool = False) -> tuple[int, str]:
        text, verdict = report(results, code, planned)
        return verdict, text.splitlines()[0]

    assert first(result()) == (0, "Fits: 5 optimizer steps with the longest batches, with at most 3.0 GiB allocated.")
    assert first(result(), result(rank=1, out_of_memory=True), code=1) == (
        1,
        "Does not fit: the program ran out of memory on rank 1.",
    )
    assert first(result(), code=1, planned=True)[0] == 1
    assert first(code=1) == (2, "Unknown: the program ended with exit code 1 before iterating a loader of torch.utils.data.")
    assert first()[0] == 2
    failed = result(ended="error", error="KeyError: 'labels'", steps=0)
    assert first(failed, code=1) == (2, "Unknown: rank 0 failed after 0 optimizer steps: KeyError: 'labels'")
    assert first(result(ended="killed"), code=137)[1].startswith("Unknown: the program ended with exit code 137 before")
    assert first(result(ended="program", steps=3))[1].startswith(
        "Fits: 3 optimizer steps with the longest batches, where the program itself ended, with"
    )
    # What was evaluated does not stand for what was trained.
    evaluated, trained = result()["loaders"][0], result()["loaders"][0]
    evaluated["training"] = False
    trained["longest"] = [{**batch, "given": 0} for batch in trained["longest"]]
    assert first(result(loaders=[evaluated, trained]))[1].startswith("Unknown: the program ended before it had used")
    trained["longest"] = []
    assert first(result(loaders=[evaluated, trained]))[1].startswith("Unknown: the longest batches of a loader were not found")
    assert first(result(loaders=[evaluated]))[1] == "Fits, without training: no backward pass has run."
    text, _ = report([result()], 0, False)
    assert "   0  cuda:1         3.0 GiB        5.0 GiB     21.0 GiB  NVIDIA L4" in text
    assert "Loader 1 (training): 40 of 1,200 batches compared" in text and "--seconds" in text
    assert "  most tokens, and tokens times length: 8 samples of length 640 (batch 7 of epoch 0), run 4 times" in text
    other = result()
    other["loaders"][0]["longest"][1] = {**other["loaders"][0]["longest"][1], "number": 8, "samples": 1, "given": 0}
    text, _ = report([other], 0, False)
    assert "  most tokens times length: 8 samples of length 640 (batch 7 of epoch 0), run 2 times\n" in text
    assert "  most tokens: 1 sample of length 640 (batch 8 of epoch 0), not run\n" in text


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        ([], "give the program after `--`"),
        (["--gpu", "L4", "--", "python"], "--gpu: only with --plan"),
        (["--epochs", "0", "--", "python"], "--epochs: from 1"),
    ):
        with pytest.raises(SystemExit) as ended:
            preflight.main(words)
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    assert preflight.main(["--", "/nonexistent/python", "train.py"]) == 2
    assert "No such file" in capsys.readouterr().err


# Two epochs, an evaluation and a checkpoint; memory runs out at a number of tokens.
PROGRAM = """
import json, os, sys
import torch
from long_texts import Texts, collate

most, folder = int(sys.argv[1]), sys.argv[2]
rank = int(os.environ.get("RANK", "0"))
texts = Texts(seed=1)
sampler = None
model = torch.nn.Embedding(256, 1).to(sys.argv[3])
whole = model
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
    sampler = torch.utils.data.DistributedSampler(texts)
    model = torch.nn.parallel.DistributedDataParallel(model)
loader = torch.utils.data.DataLoader(texts, batch_size=8, collate_fn=collate, sampler=sampler, num_workers=2)
optimizer = torch.optim.Adam(model.parameters())
print(json.dumps({"customized": "own" if hasattr(sys, "own_customize") else "none"}), flush=True)
for epoch in range(2):
    for batch in loader:
        print(json.dumps({"rank": rank, "shape": list(batch.shape)}), flush=True)
        if batch.numel() > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        held = torch.empty(batch.numel() << 20 if sys.argv[3] == "cuda" else 0, dtype=torch.uint8, device=sys.argv[3])
        model(batch.to(sys.argv[3])).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        del held
    open(os.path.join(folder, "checkpoint"), "w").close()
"""


def run(folder: Path, program: list[str], *options: str) -> Any:
    (folder / "train.py").write_text(PROGRAM)
    own = folder / "own"
    own.mkdir(exist_ok=True)
    (own / "sitecustomize.py").write_text("import sys\nsys.own_customize = True\n")
    # The program's environment has no Tidemark.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(own), str(TESTS)])}
    start = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); from tidemark.preflight.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *options, "--", *program]
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)


def shapes(printed: str, rank: int = 0) -> list[list[int]]:
    # Lines of several ranks may be on one line.
    return [json.loads(found) for found in re.findall(rf'{{"rank": {rank}, "shape": (\[[0-9, ]+\])}}', printed)]


def longest(rank: int = 0, ranks: int = 1) -> list[int]:
    """The shape of the largest batch of eight, as a plain loop or a DistributedSampler makes them."""
    texts = Texts(seed=1)
    order = list(range(len(texts)))
    if ranks > 1:
        order = list(torch.utils.data.DistributedSampler(texts, num_replicas=ranks, rank=rank))
    batches = [order[place : place + 8] for place in range(0, len(order), 8)]
    return max(([len(batch), max(texts.sizes[index] for index in batch)] for batch in batches), key=lambda one: one[0] * one[1])


def test_a_program(tmp_path: Path) -> None:
    ran = run(tmp_path, [sys.executable, "train.py", "1000000", ".", "cpu"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert shapes(ran.stdout) == [longest()] * 5
    assert '"customized": "own"' in ran.stdout
    assert "Fits: 5 optimizer steps with the longest batches; memory was not measured" in ran.stdout
    assert "Loader 1 (training): 25 batches compared" in ran.stdout
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.nightly
def test_a_program_that_runs_out_of_memory(tmp_path: Path) -> None:
    samples, length = longest()
    ran = run(tmp_path, [sys.executable, "train.py", str(samples * length - 1), ".", "cpu"])
    assert ran.returncode == 1
    assert shapes(ran.stdout) == [longest()]
    assert "Does not fit: the program ran out of memory on rank 0." in ran.stdout
    assert "OutOfMemoryError: CUDA out of memory" in ran.stderr
    failed = run(tmp_path, [sys.executable, "-c", "raise KeyError"])
    assert failed.returncode == 2 and "Unknown: the program ended with exit code 1 before" in failed.stdout


@pytest.mark.nightly
def test_ranks_end_together(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ran = run(tmp_path, [*launcher, "train.py", "1000000", ".", "cpu"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [shapes(ran.stdout, rank) for rank in range(2)] == [[longest(rank, 2)] * 5 for rank in range(2)]
    assert "Loader 1 (training) of rank 1: 13 batches compared" in ran.stdout


@needs_gpu
@pytest.mark.skipif(not on_gpu(), reason="the GPU is a real one")
@pytest.mark.nightly
def test_a_planned_program(tmp_path: Path) -> None:
    """Each token takes 1 MiB: it fits a simulated GPU, and does not fit one with less memory than the longest batch needs."""
    samples, length = longest()
    needed = samples * length
    program = [GPU_PYTHON, "train.py", "1000000", ".", "cuda"]
    ran = run(tmp_path, program, "--plan", "--gpu", "H100-80GB")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(rf"with at most {needed}\.[0-9] MiB allocated", ran.stdout), ran.stdout
    assert re.search(rf"   0  cuda:0 +{needed}\.[0-9] MiB .* NVIDIA H100", ran.stdout), ran.stdout
    ran = run(tmp_path, program, "--plan", "--gpu", "H100-80GB", "--memory", f"{needed}MiB", "-o", "kept.tide")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "Does not fit: the program ran out of memory on rank 0." in ran.stdout
    assert (tmp_path / "kept.tide").exists()


def test_the_folder_of_the_start_has_only_that_file() -> None:
    """It is on the path of every Python that the program starts."""
    files = [path for path in preflight._STARTUP.iterdir() if path.name != "__pycache__"]
    assert [path.name for path in files] == ["sitecustomize.py"]
    assert importlib.util.spec_from_file_location("sitecustomize", files[0]) is not None
