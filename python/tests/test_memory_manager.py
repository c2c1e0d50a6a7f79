"""The memory manager: batch sizes that fit, equal gradients after running out of memory, gradient checkpointing, policies."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import needs_gpu, run_on_gpu

import tidemark
from tidemark.memory_manager import checkpointing, model_steps, policies

torch = pytest.importorskip("torch")


class HeldTensor:
    """Counts the instances that are alive."""

    alive = 0

    def __init__(self) -> None:
        HeldTensor.alive += 1

    def __del__(self) -> None:
        HeldTensor.alive -= 1


def out_of_memory() -> Exception:
    kind = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
    return kind("CUDA out of memory. Tried to allocate 2.00 GiB")  # type: ignore[no-any-return]


def limited(largest: int) -> Any:
    def step(size: int) -> None:
        held = HeldTensor()
        if size > largest:
            try:
                raise out_of_memory()
            except RuntimeError as error:
                raise RuntimeError("CUDA error: out of memory") from error
        del held

    return step


def test_a_maximum_on_the_cpu() -> None:
    found = tidemark.auto_batch_size(limited(1000), maximum=100, multiple_of=8, device="cpu")
    assert (found.batch_size, found.ended, found.slope_bytes, found.limit_bytes) == (96, "maximum", None, None)
    found = tidemark.auto_batch_size(limited(20), start=4, maximum=50, max_probes=20, device="cpu")
    assert (found.batch_size, found.ended, found.does_not_fit) == (19, "found", 21), "19 is within 5% of 20"
    assert [probe.fits for probe in found.probes] == [probe.batch_size <= 20 for probe in found.probes]
    found = tidemark.auto_batch_size(limited(0), maximum=50, device="cpu")
    assert (found.batch_size, found.ended) == (None, "nothing_fits")
    assert HeldTensor.alive == 0, "tracebacks keep nothing"


def test_the_cpu_without_a_maximum_is_refused() -> None:
    with pytest.raises(tidemark.TidemarkError, match="the CPU has no limit"):
        tidemark.auto_batch_size(limited(10), device="cpu")


def test_other_errors_are_the_users() -> None:
    def wrong(size: int) -> None:
        raise RuntimeError(f"shapes of {size} do not match")

    with pytest.raises(RuntimeError, match="shapes of 1"):
        tidemark.auto_batch_size(wrong, maximum=8, device="cpu")
    for arguments in ({"start": 0}, {"multiple_of": 0}, {"margin": 0}, {"max_probes": 0}, {"maximum": 0}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            tidemark.auto_batch_size(wrong, **{"maximum": 8, "device": "cpu", **arguments})


def small_model() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2)).double()


def mean_loss(model: Any, batch: Any) -> Any:
    return torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])


@pytest.mark.parametrize(
    ("samples", "largest", "sizes"), [(8, 2, [2, 2, 2, 2]), (11, 4, [3, 3, 3, 2]), (7, 7, [7]), (5, 1, [1] * 5)]
)
def test_gradients_of_parts_equal_those_of_the_batch(samples: int, largest: int, sizes: list[int]) -> None:
    model = small_model()
    batch = {"x": torch.randn(samples, 5).double(), "y": torch.randn(samples, 2).double()}
    mean_loss(model, batch).backward()
    whole = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)

    def step(part: Any, weight: float) -> int:
        loss = mean_loss(model, part)
        # Memory runs out late: gradients of earlier parts exist already.
        (loss * weight).backward()
        if len(part["x"]) > largest:
            raise out_of_memory()
        return len(part["x"])

    ran = tidemark.retry_on_oom(step, batch, model=model)
    assert (ran.values, ran.size) == (sizes, sizes[0])
    for parameter, expected in zip(model.parameters(), whole):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-12, atol=1e-14)


def test_the_decorator_begins_with_what_fitted() -> None:
    model = small_model()
    calls: list[int] = []

    @tidemark.retry_on_oom(model=model)
    def step(part: Any, weight: float) -> float:
        calls.append(len(part["x"]))
        if len(part["x"]) > 4:
            raise out_of_memory()
        return weight

    batch = {"x": torch.randn(8, 5).double(), "y": torch.randn(8, 2).double()}
    assert step(batch).values == [0.5, 0.5]
    assert step(batch).retries == 0
    assert calls == [8, 4, 4, 4, 4]


def test_what_retrying_cannot_help() -> None:
    model = small_model()
    batch = torch.ones(4, 5)

    def never(part: Any, weight: float) -> None:
        raise out_of_memory()

    with pytest.raises(RuntimeError, match="out of memory"):
        tidemark.retry_on_oom(never, batch, model=model)
    with pytest.raises(ValueError, match="first dimension"):
        tidemark.retry_on_oom(never, [torch.ones(4), torch.ones(3)], model=model)
    next(model.parameters()).grad = torch.zeros(7, 5).double()
    with pytest.raises(ValueError, match="gradients already"):
        tidemark.retry_on_oom(never, batch, model=model)


def test_errors_of_the_programs_own() -> None:
    model = small_model()
    batch = torch.ones(4, 5).double()

    class Silent(RuntimeError):
        def __str__(self) -> str:
            raise KeyError("nothing to say")

    def silent(part: Any, weight: float) -> None:
        raise Silent

    with pytest.raises(Silent):
        tidemark.retry_on_oom(silent, batch, model=model)

    def late(part: Any, weight: float) -> Any:
        yield part

    with pytest.raises(TypeError, match="yields or awaits"):
        tidemark.retry_on_oom(late, batch, model=model)

    class Attributes:
        """A step with attributes that have the names of attributes of its caller."""

        def __init__(self) -> None:
            self._step, self._model, self._size, self._run = 1, None, 2, "run"

        def __call__(self, part: Any, weight: float) -> int:
            return len(part)

    assert tidemark.retry_on_oom(Attributes(), batch, model=model).values == [4]


def test_an_error_that_the_program_is_handling_keeps_its_variables() -> None:
    def fail() -> None:
        found = 42
        raise ValueError(found)

    def step(part: Any, weight: float) -> None:
        held = HeldTensor()
        if len(part) > 2:
            try:
                raise out_of_memory()
            except RuntimeError as first:
                raise out_of_memory() from first
        del held

    try:
        fail()
    except ValueError as error:
        assert tidemark.retry_on_oom(step, torch.ones(4, 5).double(), model=small_model()).retries == 1
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
        assert error.__traceback__.tb_next.tb_frame.f_locals == {"found": 42}
    assert HeldTensor.alive == 0, "tracebacks keep nothing"


class Blocks(torch.nn.Module):  # type: ignore[misc]
    """A block that saves much, and one that saves little, in a list as in models."""

    def __init__(self) -> None:
        super().__init__()
        wide = torch.nn.Sequential(torch.nn.Linear(16, 4096), torch.nn.Tanh(), torch.nn.Linear(4096, 16))
        narrow = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.5))
        self.blocks = torch.nn.ModuleList([narrow, wide])
        self.norm = torch.nn.BatchNorm1d(16)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def test_blocks_are_measured_and_checkpointed() -> None:
    model = Blocks()
    model.eval()
    blocks = checkpointing.blocks_of(model)
    assert [block.name for block in blocks] == ["blocks.0", "blocks.1"]
    batch = torch.randn(4, 16)
    state = torch.random.get_rng_state()
    mean = model.norm.running_mean.clone()
    with model_steps.unchanged(model), checkpointing.BlockMeter(model, blocks):
        model_steps.forward(model, batch)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.equal(mean, model.norm.running_mean)
    assert not model.training
    assert blocks[1].saved_bytes == 4 * 4096 * 4, "tanh's output, which the second layer saves too, counts once"
    assert blocks[0].saved_bytes < 4 * 16 * 4 * 3
    assert all("forward" not in block.module.__dict__ for block in blocks)
    assert [block.name for block in checkpointing.cheapest_first(blocks, 1000)] == ["blocks.1"]

    model.train()
    gradients = []
    for _ in range(2):
        torch.manual_seed(1)
        model.zero_grad()
        model(batch).square().mean().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
        for block in blocks:
            if not checkpointing.is_checkpointed(block.module):
                checkpointing.checkpoint_block(block.module)
    torch.testing.assert_close(gradients[0], gradients[1])
    again = checkpointing.blocks_of(model)
    assert not any(checkpointing.can_change(block.module) for block in again)


def test_a_manager_without_cuda() -> None:
    manager = tidemark.MemoryManager(threshold_mb=500, device="cpu")
    assert manager.check_memory() == (0.0, 0.0)
    assert manager.optimize_memory(small_model(), (8, 5)) is None
    assert manager.last_optimization is not None
    assert "no CUDA" in manager.last_optimization.notes[1]
    assert manager.calculate_optimal_batch_size(400, 800) is None
    manager._line = 10.0 * 2**20, 100.0 * 2**20
    assert manager.calculate_optimal_batch_size(400, 805) == 70
    assert manager.calculate_optimal_batch_size(400, 105) is None
    for wrong in ({"threshold_mb": 0}, {"threshold_percent": 101}, {"threshold_mb": 1, "threshold_percent": 1}):
        with pytest.raises(ValueError, match="threshold"):
            tidemark.MemoryManager(**wrong)  # type: ignore[arg-type]


CHANGE = {"name": "GPU 0", "risk_assessment": {"risk_level": "high", "recommendation": "Take less."}}


def test_policies(caplog: pytest.LogCaptureFixture) -> None:
    policies._POLICIES["warn"](CHANGE)
    policies._POLICIES["free_cache"](CHANGE)
    assert "Take less." in caplog.text
    assert "emptied" in caplog.text
    with pytest.raises(ValueError, match="policy 'stop'"):
        tidemark.act_on_forecast("stop")
    ended: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: ended.append("ended"))
    try:
        tidemark.checkpoint_and_exit(lambda: ended.append("saved"))(CHANGE)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == ["saved", "ended"]
    with pytest.raises(OSError, match="disk is full"):
        tidemark.checkpoint_and_exit(lambda: (_ for _ in ()).throw(OSError("disk is full")))(CHANGE)


def test_a_policy_is_watched() -> None:
    with tidemark.act_on_forecast(lambda change: None, devices=["cpu"], interval=0.05) as watch:
        assert watch._thread.is_alive()
    assert not watch._thread.is_alive()


ON_GPU = """
import gc, json
import torch
import tidemark

torch.manual_seed(0)
torch.set_default_device("cuda")
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True) for _ in range(4)])
torch.set_default_device("cpu")
optimizer = torch.optim.AdamW(model.parameters())

def step(batch_size):
    model(torch.randn(batch_size, 512, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

found = tidemark.auto_batch_size(step)
clean = torch.cuda.memory_allocated()
state = sum(p.numel() * 4 * 3 for p in model.parameters())

def fits(batch_size):
    gc.collect()
    torch.cuda.empty_cache()
    try:
        step(batch_size)
    except torch.cuda.OutOfMemoryError:
        optimizer.zero_grad(set_to_none=True)
        return False
    return True

# Were the largest size that fits more than 5% above the one found, this one would fit.
larger = int(found.batch_size / 0.95) + 1
larger_fits = fits(larger)

del optimizer
gc.collect()
manager = tidemark.MemoryManager(threshold_mb=7_000)
size = manager.optimize_memory(model, (64, 512, 1024))
done = manager.last_optimization
torch.cuda.reset_peak_memory_stats()
torch.autograd.grad(model(torch.randn(64, 512, 1024, device="cuda")).mean(), list(model.parameters()))
print(json.dumps({
    "found": found.batch_size, "probes": len(found.probes), "larger_fits": larger_fits, "clean": clean, "state": state,
    "again": found.ended, "slope": found.slope_bytes, "limit": found.limit_bytes, "fails": found.does_not_fit,
    "size": size, "names": done.checkpointed, "before": done.peak_before_mb, "after": done.peak_after_mb, "notes": done.notes,
    "peak": torch.cuda.max_memory_allocated() / 2**20, "now": manager.check_memory()}))
"""


@needs_gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    package = str(Path(tidemark.__file__).parents[1])
    printed = run_on_gpu(ON_GPU, tmp_path, fits=False, path=[package]).splitlines()
    told = json.loads(next(line for line in printed if line.startswith("{")))
    assert told["larger_fits"] is False, told
    assert told["probes"] <= 8
    assert told["state"] <= told["clean"] < told["state"] + (128 << 20), "parameters, optimizer state, cuBLAS's workspaces"
    assert told["before"] > 7_000
    assert told["names"], told["notes"]
    assert len(told["names"]) < 4, "not more than needed"
    assert told["after"] < told["before"]
    assert abs(told["peak"] - told["after"]) < 0.05 * told["after"]
    assert (told["size"] is None) == (told["after"] <= 7_000)
    assert told["now"][0] * 2**20 < told["clean"]
