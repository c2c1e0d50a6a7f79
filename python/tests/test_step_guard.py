"""StepGuard: the law of memory, gradients of split steps, decisions that all ranks share, and a real memory limit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import GPU_PYTHON, needs_gpu, on_gpu, run_on_gpu
from rank_programs import free_port, run_ranks
from scripted_device import ScriptedDevice

import tidemark
from tidemark.step_guard import BatchShape, MemoryLaw
from tidemark.step_guard.flight_dump import dumps_on_signal
from tidemark.step_guard.shapes import part_bounds, shape_of

torch = pytest.importorskip("torch")
HERE = Path(__file__).parent

MIB = 2**20


def test_the_law_of_four_shapes() -> None:
    law = MemoryLaw()
    assert law.predict(BatchShape(2, 10)) is None
    # 1000 + 10 a token + 0.5 a token and length, by hand.
    for samples, length, needed in ((1, 10, 1150), (2, 20, 1800), (1, 40, 2200), (4, 20, 2600)):
        assert law.coefficients is None
        law.add(BatchShape(samples, length), needed)
    assert law.coefficients == pytest.approx((1000, 10, 0.5))
    found = law.predict(BatchShape(3, 30))
    assert found is not None and found.is_fitted
    assert found.expected_bytes == pytest.approx(1000 + 900 + 1350)
    assert found.bound_bytes == pytest.approx(3250 * 1.1), "10% before any prediction was tested"
    for length in range(11, 19):
        law.add(BatchShape(4, length), 1000 + 40 * length + 2 * length * length)
    assert law.error == 0.02


def test_a_law_without_squares() -> None:
    law = MemoryLaw()
    draw = random.Random(3)
    for _ in range(40):
        shape = BatchShape(8, draw.randint(50, 400))
        law.add(shape, (5 * MIB + 900 * shape.tokens) * draw.uniform(0.995, 1.005))
    assert law.coefficients is not None
    assert law.coefficients[2] == 0, "another coefficient has to halve the error"
    assert law.coefficients[1] == pytest.approx(900, rel=0.01)


@pytest.mark.parametrize("square", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_bounds_of_long_batches(square: float, noise: float) -> None:
    """Of 200 jobs with short batches, at most 2 have a batch of 8 times the longest length that needs more than its bound."""
    above = 0
    for seed in range(200):
        draw = random.Random(seed)
        law = MemoryLaw()

        def needed(shape: BatchShape, draw: random.Random = draw) -> float:
            return (50_000 + 100 * shape.tokens + square * shape.squares) * draw.uniform(1 - noise, 1 + noise)

        for _ in range(60):
            shape = BatchShape(8, draw.randint(64, 256))
            law.add(shape, needed(shape))
        found = law.predict(BatchShape(8, 2048))
        assert found is not None
        above += needed(BatchShape(8, 2048)) > found.bound_bytes
    assert above <= 2


def test_short_batches_at_the_peak_of_the_gradients() -> None:
    """Their peak is at the complete gradients, whatever their length; nothing follows for the activations of long ones."""
    law = MemoryLaw()
    for length in range(10, 60, 5):
        law.add(BatchShape(1, length), 1_000_000 + 10 * length, kept_bytes=1_000_000)
    assert law.shapes == 0
    found = law.predict(BatchShape(1, 550))
    assert found is not None and not found.is_fitted
    assert found.bound_bytes == pytest.approx(1_000_550 * 100)
    short = law.predict(BatchShape(1, 5))
    assert short is not None and short.bound_bytes == pytest.approx(1_000_550)


def test_little_data_bounds_in_proportion() -> None:
    law = MemoryLaw()
    law.add(BatchShape(4, 100), 1000)
    expected = {(4, 100): 1000, (8, 100): 2000, (4, 200): 4000, (2, 200): 2000, (1, 50): 1000, (16, 50): 2000}
    for (samples, length), bound in expected.items():
        found = law.predict(BatchShape(samples, length))
        assert found is not None and (found.expected_bytes, found.bound_bytes) == (None, bound)
    for _ in range(100):  # the same shape again is nothing new
        law.add(BatchShape(4, 101), 1000)
    assert law.coefficients is None


def test_many_shapes_take_bounded_memory() -> None:
    law = MemoryLaw()
    draw = random.Random(1)
    law.add(BatchShape(64, 8192), 1e9 + 50 * 64 * 8192)
    for _ in range(3000):
        shape = BatchShape(draw.randint(1, 32), draw.randint(1, 4096))
        law.add(shape, 1e9 + 50 * shape.tokens)
    assert law.shapes == 128
    assert law.coefficients == pytest.approx((1e9, 50, 0))
    found = law.predict(BatchShape(64, 8192))
    assert found is not None and found.bound_bytes == pytest.approx((1e9 + 50 * 64 * 8192) * 1.02)


def test_shapes_of_batches() -> None:
    tokens = {
        "input_ids": torch.zeros(4, 7, dtype=torch.long),
        "attention_mask": torch.ones(4, 1, 7, 7),
        "labels": [torch.zeros(4)],
    }
    assert shape_of(tokens) == (4, 7)
    assert shape_of((torch.zeros(3, 2, 8, 8), torch.zeros(3, dtype=torch.long))) == (3, 128)
    assert shape_of([torch.zeros(5, 9), torch.zeros(5, 11, dtype=torch.int32)]) == (5, 11)
    for wrong in ([torch.zeros(2), torch.zeros(3)], {"loss": torch.tensor(1.0)}, ["text"], torch.zeros(0, 3)):
        with pytest.raises(ValueError, match="shape="):
            shape_of(wrong)
    assert part_bounds(10, 4) == [(0, 3), (3, 6), (6, 8), (8, 10)]
    assert part_bounds(3, 3) == [(0, 1), (1, 2), (2, 3)]


def guarded(room: int, **options: Any) -> tuple[Any, ScriptedDevice, Any]:
    """A guard whose law is known: 1000 bytes for each token."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2)).double()
    memory = ScriptedDevice(room)
    guard = tidemark.StepGuard(model, memory=memory, margin=0.0, **options)
    for samples in (1, 2, 3, 4):
        for part in guard.parts(torch.zeros(samples, 5).double()):
            memory.taken = 1000 * part.batch.numel()
    guard.law._errors.extend([0.0] * 8)
    return guard, memory, model


@pytest.mark.parametrize(("samples", "sizes"), [(8, [4, 4]), (11, [4, 4, 3]), (4, [4]), (5, [3, 2])])
def test_gradients_of_parts_equal_those_of_the_batch(samples: int, sizes: list[int]) -> None:
    guard, memory, model = guarded(room=22_000)
    batch = {"x": torch.randn(samples, 5).double(), "y": torch.randn(samples, 2).double()}
    loss = torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])
    whole = torch.autograd.grad(loss, list(model.parameters()))
    seen = []
    for part in guard.parts(batch):
        memory.taken = 1000 * part.batch["x"].numel()
        (torch.nn.functional.mse_loss(model(part.batch["x"]), part.batch["y"]) * part.weight).backward()
        seen.append((len(part.batch["x"]), part.is_last))
    assert seen == [(size, index == len(sizes) - 1) for index, size in enumerate(sizes)]
    assert guard.decision.action == ("run" if len(sizes) == 1 else "split")
    for parameter, expected in zip(model.parameters(), whole):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-12, atol=1e-14)


def test_nothing_is_decided_on_no_data_and_nothing_given_up_on_little() -> None:
    memory = ScriptedDevice(1000)
    guard = tidemark.StepGuard(torch.nn.Linear(5, 2), memory=memory, otherwise="stop")
    first = torch.zeros(2, 5)
    assert [len(part.batch) for part in guard.parts(first)] == [2]
    assert (guard.decision.action, guard.decision.prediction) == ("run", None)
    memory.taken = 900
    for _ in guard.parts(first):
        memory.taken = 900
    # It would need up to 90,000 bytes; but little is known: the smallest parts, not a stop.
    assert [len(part.batch) for part in guard.parts(torch.zeros(4, 500))] == [1] * 4
    assert guard.decision.prediction.is_fitted is False
    assert [len(part.batch) for part in guard.parts(torch.zeros(1, 500))] == [1]
    assert guard.decision.action == "run"


def test_what_happens_to_a_batch_that_does_not_fit() -> None:
    batch = torch.zeros(2, 50).double()
    guard, _, _ = guarded(room=30_000)
    assert list(guard.parts(batch)) == [] and guard.skipped
    guard, _, _ = guarded(room=30_000, otherwise="run")
    assert [part.weight for part in guard.parts(batch)] == [0.5, 0.5]
    guard, _, _ = guarded(room=30_000, otherwise="stop")
    with pytest.raises(tidemark.StepStopped, match=r"2 samples of length 50 may need .* are available") as stopped:
        guard.parts(batch)
    assert stopped.value.decision.action == "stop"
    assert guard.counts == {"run": 4, "split": 0, "skip": 0, "stop": 1}
    guard, _, _ = guarded(room=60_000, max_parts=1)
    assert list(guard.parts(batch)) == [], "it would fit in two parts"


def test_a_batch_that_only_the_program_can_split() -> None:
    guard, _, _ = guarded(room=30_000, shape=lambda texts: (len(texts), 5))
    assert list(guard.parts(["a"] * 8)) == []

    def split(texts: Any, begin: int, end: int) -> Any:
        return texts[begin:end]

    guard, _, _ = guarded(room=30_000, shape=lambda texts: (len(texts), 5), split=split)
    assert [part.batch for part in guard.parts(list("abcdefgh"))] == [list("abcd"), list("efgh")]


def test_a_step_that_is_left_does_not_count() -> None:
    guard, memory, _ = guarded(room=30_000)
    before = guard.law.shapes
    with pytest.raises(KeyError):
        for _ in guard.parts(torch.zeros(6, 5).double()):
            memory.taken = 10**9
            raise KeyError
    for part in guard.parts(torch.zeros(5, 5).double()):
        memory.taken = 1000 * part.batch.numel()
    assert guard.law.shapes == before + 1


def test_batches_are_decided_ahead() -> None:
    guard, memory, _ = guarded(room=30_000)
    shapes = []
    for batch in guard.batches([torch.zeros(samples, 5).double() for samples in (2, 3, 8, 2)]):
        for part in guard.parts(batch):
            memory.taken = 1000 * part.batch.numel()
            assert (guard._pending is None) == (len(shapes) == 3)
        shapes.append((guard.decision.shape.samples, guard.decision.action, guard.decision.parts))
    assert shapes == [(2, "run", 1), (3, "run", 1), (8, "split", 2), (2, "run", 1)]
    guard.prepare(torch.zeros(1, 5))
    with pytest.raises(tidemark.TidemarkError, match="has not been run"):
        guard.prepare(torch.zeros(1, 5))
    with pytest.raises(tidemark.TidemarkError, match=r"preflight\(\): .* has not been run"):
        guard.preflight(lambda batch, weight: None, torch.zeros(1, 5))
    assert list(guard.batches([])) == []


def test_a_loop_over_batches_that_is_left() -> None:
    """The decision about the batch that was read ahead is not that of the next one."""
    guard, memory, _ = guarded(room=30_000)
    for batch in guard.batches([torch.zeros(samples, 5).double() for samples in (2, 8, 8)]):
        for part in guard.parts(batch):
            memory.taken = 1000 * part.batch.numel()
        assert guard._pending is not None
        break
    assert len(list(guard.parts(torch.zeros(3, 5).double()))) == 1
    assert guard.decision.shape == (3, 5)


def test_counters_that_fail_do_not_end_the_step(caplog: pytest.LogCaptureFixture) -> None:
    guard, memory, _ = guarded(room=30_000)
    before = guard.law.shapes

    def broken() -> int:
        raise OSError("no counters")

    memory.peak = broken  # type: ignore[method-assign]
    assert len(list(guard.parts(torch.zeros(5, 5).double()))) == 1
    memory.reset_peak = broken  # type: ignore[assignment,method-assign]
    assert len(list(guard.parts(torch.zeros(8, 5).double()))) == 2
    assert guard.law.shapes == before
    assert caplog.text.count("rank 0 cannot measure its step") == 1


def test_wrong_arguments() -> None:
    model = torch.nn.Linear(2, 2)
    for wrong in ({"otherwise": "retry"}, {"max_parts": 0}, {"margin": 1.0}, {"timeout": 0}, {"process_group": object()}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            tidemark.StepGuard(model, **wrong)


def test_a_model_on_the_cpu_runs_whole() -> None:
    guard = tidemark.StepGuard(torch.nn.Linear(2, 2))
    for _ in range(8):
        assert [part.weight for part in guard.parts(torch.zeros(64, 2))] == [1.0]
    assert guard.decision == tidemark.step_guard.StepDecision("run", 1, None, None, BatchShape(64, 2), None, None)


def test_which_runs_dump_on_a_signal() -> None:
    run = ["/opt/bin/tidemark", "run"]
    for yes in (["--keep", "10min", "python"], ["-q", "--keep=1GiB", "--dump", "on-oom,on-signal", "--", "python"]):
        assert dumps_on_signal([*run, *yes])
    for no in (["python", "--keep"], ["--keep", "1h", "--dump=on-oom", "python"], ["--", "python", "--keep", "1h"]):
        assert not dumps_on_signal([*run, *no])
    assert not dumps_on_signal(["python", "run", "--keep", "1h"])


STOPS = """
import time
import torch
import tidemark

class Scarce:
    def allocated(self): return 0
    def peak(self): return self.taken
    def reset_peak(self): pass
    def empty(self): pass
    def room(self, needed, emptied): return 5000

memory = Scarce()
guard = tidemark.StepGuard(torch.nn.Linear(2, 2), memory=memory, otherwise="stop")
try:
    for samples in (1, 2, 3, 4, 5, 1):
        for part in guard.parts(torch.zeros(samples, 2 if samples < 5 else 900)):
            memory.taken = 100 * part.batch.numel()
except tidemark.StepStopped as error:
    print(error)
time.sleep(1)
"""


@pytest.mark.skipif("TIDEMARK_BUILD" not in os.environ, reason="TIDEMARK_BUILD is not set: no program that records")
def test_a_stop_dumps_the_flight_recorder(tmp_path: Path) -> None:
    (tmp_path / "stops.py").write_text(STOPS)
    program = str(Path(os.environ["TIDEMARK_BUILD"]) / "bin" / "tidemark")
    options = ["--keep", "1h", "--dump", "on-signal", "-o", "kept.tide"]
    path = os.pathsep.join([str(Path(str(tidemark.__file__)).parents[1]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [program, "run", *options, "--", sys.executable, "stops.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert "a batch of 5 samples of length 900 may need" in ran.stdout, ran.stdout + ran.stderr
    assert "stopped before the step; the flight recorder (process" in ran.stdout
    marks = subprocess.run([program, "dump", "kept.tide"], cwd=tmp_path, text=True, capture_output=True, check=True).stdout
    assert "step guard: stop" in marks


@pytest.fixture(scope="module")
def ranks() -> list[dict[str, Any]]:
    """What each of three ranks did in each scene of guard_ranks.py, and what it logged."""
    return run_ranks("guard_ranks.py", 3)


def scene(ranks: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [rank[name] for rank in ranks]


def check_gradients(told: list[dict[str, Any]], ranks: list[dict[str, Any]]) -> None:
    """Those of DDP are the same on all ranks, and equal torch's without a guard."""
    plain = ranks[0]["plain"]["gradients"]
    for rank in told:
        assert len(rank["gradients"]) == len(plain) == 9
        for guarded_step, plain_step in zip(rank["gradients"], plain):
            for one, other in zip(guarded_step, plain_step):
                assert one == pytest.approx(other, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("name", ["ddp", "ahead"])
def test_ranks_split_together(name: str, ranks: Any) -> None:
    told = scene(ranks, name)
    assert all(rank["decisions"] == told[0]["decisions"] for rank in told)
    # Rank 1 has a batch of 6 samples of length 40, with room for 100 tokens.
    assert told[0]["decisions"] == [["run", 1, None, None]] * 7 + [["split", 3, 1, None], ["run", 1, None, None]]
    assert [rank["parts"][7] for rank in told] == [[2, 2, 2], [2, 2, 2], [1, 1]], "under DDP a rank may run fewer parts"
    check_gradients(told, ranks)


def test_ranks_whose_parts_must_be_equally_many_skip_together(ranks: Any) -> None:
    told = scene(ranks, "equal")
    # Rank 2 has two samples, so three parts cannot be run everywhere.
    assert all(rank["decisions"][7] == ["skip", 0, 1, None] for rank in told)
    assert all(rank["gradients"][7] is None and rank["gradients"][8] is not None for rank in told)


@pytest.mark.parametrize("name", ["fails", "unknown"])
def test_a_rank_that_cannot_predict(name: str, ranks: Any) -> None:
    told = scene(ranks, name)
    decisions = told[0]["decisions"]
    assert all(rank["decisions"] == decisions for rank in told)
    failed = [step for step, decision in enumerate(decisions) if decision[3] == 0]
    if name == "fails":  # what it asks about its memory has failed: split in doubt
        assert len(failed) == 2 and all(decisions[step][:2] == ["split", 2] for step in failed)
        assert "OSError" in ranks[0]["stderr"] and "OSError" not in ranks[1]["stderr"]
    else:  # it does not know the shape: it runs whole, the others as they need it
        assert failed == [7] and decisions[7] == ["split", 3, 1, 0]
        assert [rank["parts"][7] for rank in told] == [[6], [2, 2, 2], [1, 1]]
    check_gradients(told, ranks)


def test_ranks_skip_together(ranks: Any) -> None:
    told = scene(ranks, "skip")
    assert all(rank["decisions"] == told[0]["decisions"] for rank in told)
    assert told[0]["decisions"][7] == ["skip", 0, 1, None]
    assert all(rank["gradients"][7] is None and rank["gradients"][8] is not None for rank in told)
    assert "skip: rank 1 needs it" in ranks[0]["stderr"]
    assert "skip: a batch of 6 samples of length 40 may need" in ranks[1]["stderr"]


def test_ranks_stop_together(ranks: Any) -> None:
    told = scene(ranks, "stop")
    assert all(rank["decision"] == ["stop", 1] for rank in told)
    assert all(rank["counts"] == {"run": 7, "split": 0, "skip": 0, "stop": 1} for rank in told)


def test_ranks_at_different_steps(ranks: Any) -> None:
    assert all("ranks are at different steps, 1 to 2" in rank["error"] for rank in scene(ranks, "twice"))


def test_a_rank_that_does_not_ask(ranks: Any) -> None:
    asked, *others = scene(ranks, "absent")
    assert "rank 0 at step 0 got no answer from all of 3 ranks in 2 s" in asked["error"]
    assert others == [{"error": None}] * 2


@needs_gpu
@pytest.mark.parametrize("groups", ["nccl", "cpu:gloo,cuda:nccl"])
def test_two_gpus_agree_by_nccl(tmp_path: Path, groups: str) -> None:
    """They agree over the device, or beside it, one step ahead, and both run within their limit of memory."""
    if not on_gpu() and torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    package = str(Path(str(tidemark.__file__)).parents[1])
    startup = str(HERE.parents[1] / "tests" / "startup")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([startup, package, str(HERE)]), "MASTER_PORT": free_port()}
    command = [*on_gpu("--gpu", "H100-80GB", "--devices", "2"), GPU_PYTHON, str(HERE / "guard_two_gpus.py"), "--groups", groups]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False)
    told = [json.loads(line) for line in (ran.stdout + ran.stderr).splitlines() if line.startswith('{"rank"')]
    assert len(told) == 2 and ran.returncode == 0, ran.stdout + ran.stderr
    assert told[0]["decisions"] == told[1]["decisions"]
    others = [decision for step, decision in enumerate(told[0]["decisions"]) if step not in (9, 13)]
    assert others == [["run", 1, None]] * 14
    for step in (9, 13):
        action, parts, rank = told[0]["decisions"][step]
        assert (action, rank) == ("split", 1) and 2 <= parts <= 8


@needs_gpu
def test_a_limit_of_a_gpu(tmp_path: Path) -> None:
    """Where the plain loop runs out of memory the guarded one does not, with the parameters of a plain loop without a limit."""
    import guard_trainer

    package = str(Path(str(tidemark.__file__)).parents[1])
    program = f"import sys; sys.argv = ['', '190']\n{(HERE / 'guard_trainer.py').read_text()}"
    program = program.replace("from __future__ import annotations\n", "", 1)
    printed = run_on_gpu(f"from __future__ import annotations\n{program}", tmp_path, fits=False, path=[package, str(HERE)])
    told = json.loads(next(line for line in printed.splitlines() if line.startswith('{"died"')))
    assert "out of memory" in told["died"]
    assert told["counts"] == {"run": 22, "split": 2, "skip": 0, "stop": 0}
    assert [step for step, (action, _) in enumerate(told["decisions"]) if action == "split"] == list(guard_trainer.LONG_STEPS)

    def trained(memory: Any) -> tuple[Any, Any]:
        model, optimizer = guard_trainer.make("cpu")
        guard = None if memory is None else tidemark.StepGuard(model, memory=memory)
        decisions = guard_trainer.train(model, optimizer, guard_trainer.batches("cpu", guard_trainer.lengths()), guard)
        return list(model.parameters()), decisions

    repeated, decisions = trained(guard_trainer.Repeated(told["values"]))
    assert [list(decision) for decision in decisions] == told["decisions"]
    plain, _ = trained(None)
    for one, other in zip(repeated, plain):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
