"""check_tensors and GradientMonitor: values and gradients set by hand."""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpu_programs import GPU_PYTHON, needs_gpu, on_gpu

import tidemark

torch = pytest.importorskip("torch")
nn = torch.nn
NAN, INF = math.nan, math.inf


def check(source: Any, **options: Any) -> tidemark.TensorCheck:
    return tidemark.check_tensors(source, log=False, **options)


def test_counts_and_ranges_of_what_is_not_finite() -> None:
    values = {
        "fine": torch.tensor([[1.0, -7.0], [3.0, 0.5]]),
        "nan": torch.tensor([NAN, 2.0, -3.0, NAN]),
        "both": torch.tensor([INF, NAN, -INF, 1.5], dtype=torch.float64),
        "all": torch.full((2, 3), -INF, dtype=torch.bfloat16),
        "empty": torch.zeros(0),
    }
    result = check(values)
    found = {tensor.name: (tensor.nan, tensor.inf, tensor.abs_max, tensor.least, tensor.most) for tensor in result.tensors}
    assert found == {
        "fine": (0, 0, 7.0, None, None),
        "nan": (2, 0, 3.0, -3.0, 2.0),
        "both": (1, 2, 1.5, 1.5, 1.5),
        "all": (0, 6, None, None, None),
        "empty": (0, 0, None, None, None),
    }
    assert not result.ok and [tensor.name for tensor in result.bad] == ["nan", "both", "all"]
    assert result.checked_bytes == 16 + 16 + 32 + 12
    assert json.loads(json.dumps(result.to_dict()))["ok"] is False


def test_ranges_where_they_are_asked_for() -> None:
    (tensor,) = check([torch.arange(-5.0, 12.0)], ranges=True).tensors
    assert (tensor.name, tensor.least, tensor.most, tensor.abs_max) == ("[0]", -5.0, 11.0, 11.0)


def test_large_values_of_half_precision_are_finite() -> None:
    (tensor,) = check({"half": torch.full((70_000,), 60_000.0, dtype=torch.float16)}).tensors
    assert (tensor.inf, tensor.abs_max) == (0, 60_000.0)


def test_a_tensor_of_several_pieces_is_counted_once_each() -> None:
    large = torch.zeros(3, 1025, 1100)  # 3.4 million elements: more than a piece in two dimensions
    large[:, ::5, 7] = NAN
    large[2, 1024, 1099] = -INF
    large[0, 0, 0] = -4.0
    (tensor,) = check(large.transpose(0, 2)).tensors
    assert (tensor.nan, tensor.inf, tensor.least, tensor.most) == (3 * 205, 1, -4.0, 0.0)


def test_a_model_is_checked_with_buffers_and_gradients_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model(torch.ones(3, 2)).sum().backward()
    with torch.no_grad():
        model[0].weight[1, 0] = NAN
        model[1].running_mean[0] = INF
        model[0].bias.grad[1] = -INF
    with caplog.at_level(logging.INFO, logger="tidemark"):
        result = tidemark.check_tensors(model, gradients=True)
    assert [issue.name for issue in result.issues] == ["0.weight", "1.running_mean", "0.bias.grad"]
    assert {record.levelname for record in caplog.records} == {"ERROR"}
    assert caplog.messages[0] == "NaN in 0.weight: 1 of 4 values (0.0 MB, float32, cpu)"
    assert [(skipped.name, skipped.reason) for skipped in result.skipped] == [("1.num_batches_tracked", "dtype int64")]
    assert tidemark.check_tensors(model, lang="zh", log=False).issues[0].message.startswith("0.weight 含 NaN")


@pytest.mark.filterwarnings("ignore")
def test_what_has_no_real_values_is_skipped_and_said() -> None:
    freed = torch.zeros(8)
    part = freed[4:]
    freed.untyped_storage().resize_(0)
    result = check(
        {
            "freed": freed,
            "part of freed": part,
            "complex": torch.zeros(2, dtype=torch.complex64),
            "integer": torch.zeros(2, dtype=torch.int32),
            "quantized": torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8),
            "sparse": torch.eye(2).to_sparse(),
            "meta": torch.zeros(2, device="meta"),
            "real": torch.zeros(2),
        }
    )
    assert {skipped.name: skipped.reason for skipped in result.skipped} == {
        "freed": "its memory has been given back",
        "part of freed": "its memory has been given back",
        "complex": "dtype complex64",
        "integer": "dtype int32",
        "quantized": "quantized (torch qint8)",
        "sparse": "sparse (sparse_coo)",
        "meta": "on the meta device: no values",
    }
    assert [tensor.name for tensor in result.tensors] == ["real"]
    assert "7 skipped" in str(result)


def test_what_is_no_tensor_is_an_error() -> None:
    for nothing in (3, None, "weights", [1.0]):
        with pytest.raises(TypeError, match="check_tensors takes"):
            check(nothing)


def test_values_and_gradients_are_left_as_they_are() -> None:
    model = nn.Linear(3, 3)
    model(torch.ones(1, 3)).sum().backward()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    check(model, gradients=True, ranges=True)
    tidemark.GradientMonitor(model, log=False).record()
    assert all(torch.equal(now, then) for now, then in zip(model.parameters(), before))
    assert all(torch.equal(now.grad, then) for now, then in zip(model.parameters(), gradients))


def two_layers() -> Any:
    model = nn.Module()
    model.layers = nn.ModuleList([nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)])
    return model


def give(model: Any, first: float | None, second: float | None) -> None:
    """Gradients of four equal numbers: a norm of twice the number."""
    for layer, value in zip(model.layers, (first, second)):
        layer.weight.grad = None if value is None else torch.full((2, 2), value)


def test_norms_of_each_layer_over_time() -> None:
    model = two_layers()
    monitor = tidemark.GradientMonitor(model, history=3, log=False)
    for value in (1.0, 2.0, 3.0, 4.0):
        give(model, value, None)
        assert monitor.record() == [] or value >= 3.0
    first, second = monitor.layers()
    assert (first.layer, first.verdict, first.norms) == ("layers.0", "healthy", [4.0, 6.0, 8.0])
    assert (second.verdict, second.norms, second.counts) == ("missing", [None] * 3, {"missing": 2})
    assert monitor.history("layers.0.weight") == [4.0, 6.0, 8.0]
    give(model, 2.0, 2.0)
    monitor.record(scale=8.0)
    assert monitor.history("layers.0.weight")[-1] == 0.5
    with pytest.raises(KeyError):
        monitor.history("layers.9.weight")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, NAN], "nan"),
        ([1.0, INF], "inf"),
        ([1.0, 1e30], "exploding"),  # its sum of squares is beyond float32
        ([500.0], "exploding"),  # a norm of 1000
        ([499.0], "healthy"),
        ([0.01] * 5 + [1.0], "exploding"),  # a hundred times the median of five
        ([0.01] * 4 + [1.0], "healthy"),
        ([0.01] * 5 + [0.99], "healthy"),
        ([0.9e-7], "vanishing"),
        ([1.1e-7], "healthy"),
        ([0.0, 0.0], "healthy"),
        ([0.0, 0.0, 0.0], "zero"),
        ([0.0, 0.0, 0.1], "healthy"),
        ([None, None, None], "missing"),
    ],
)
def test_verdicts(values: list[float | None], verdict: str) -> None:
    model = two_layers()
    monitor = tidemark.GradientMonitor(model, log=False)
    for value in values:
        give(model, value, 0.1)
        monitor.record()
    first, second = monitor.layers()
    assert (first.verdict, second.verdict) == (verdict, "healthy")


def test_half_precision_gradients_do_not_overflow() -> None:
    model = two_layers().half()
    for layer in model.layers:
        layer.weight.grad = torch.full((2, 2), 60_000.0, dtype=torch.float16)
    monitor = tidemark.GradientMonitor(model, log=False)
    monitor.record()
    assert monitor.history("layers.0.weight") == [120_000.0]


def test_messages_say_name_step_and_mb_once_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    model = two_layers()
    monitor = tidemark.GradientMonitor(model)
    with caplog.at_level(logging.INFO, logger="tidemark"):
        for value in (1e4, 1e4, NAN):
            give(model, 0.1, value)
            monitor.record()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "gradient of layers.1.weight explodes at step 1: norm 2e+04 (0.0 MB)"),
        ("ERROR", "gradient of layers.1.weight has NaN at step 3 (0.0 MB)"),
    ]
    assert "layers.1" in str(monitor) and monitor.to_dict()["steps"] == 3


def test_it_records_by_itself_before_each_step_of_an_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    if "torch._dynamo" not in sys.modules:  # optimizers import the compiler, which takes seconds
        stand_in = SimpleNamespace(disable=lambda function, *_, **__: function, graph_break=lambda: None)
        monkeypatch.setitem(sys.modules, "torch._dynamo", stand_in)
        monkeypatch.setattr(torch, "_dynamo", stand_in, raising=False)
    model = nn.Sequential(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = tidemark.GradientMonitor(model, optimizer, every=2, log=False)
    for _ in range(5):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert monitor.step == 5
    assert monitor.history("0.weight") == [pytest.approx(math.sqrt(3))] * 3  # steps 1, 3 and 5
    monitor.detach()
    optimizer.step()
    assert monitor.step == 5


def test_gradients_that_vanish_in_a_deep_network() -> None:
    layers = [module for _ in range(24) for module in (nn.Linear(8, 8), nn.Sigmoid())]
    model = nn.Sequential(*layers)
    monitor = tidemark.GradientMonitor(model, log=False)
    model(torch.ones(4, 8)).sum().backward()
    monitor.record()
    verdicts = [layer.verdict for layer in monitor.layers()]
    assert verdicts[0] == "vanishing" and verdicts[-1] == "healthy"


TWO_GPUS = """
import torch, tidemark
assert torch.cuda.device_count() == 2
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256, device=f"cuda:{i % 2}", dtype=torch.bfloat16) for i in range(40)])
for parameter in model.parameters():
    parameter.grad = torch.zeros_like(parameter)
large = torch.zeros(1 << 28, device="cuda:1", dtype=torch.float16)  # 512 MiB
torch.cuda.set_device(1)
before = [(torch.cuda.memory_allocated(i), torch.cuda.memory_reserved(i)) for i in range(2)]
torch.cuda.reset_peak_memory_stats(1)
check = tidemark.check_tensors([*model.parameters(), large], log=False)
monitor = tidemark.GradientMonitor(model, log=False)
monitor.record()
after = [(torch.cuda.memory_allocated(i), torch.cuda.memory_reserved(i)) for i in range(2)]
peak = torch.cuda.max_memory_allocated(1) - before[1][0]
assert torch.cuda.current_device() == 1
assert {tensor.device for tensor in check.tensors} == {"cuda:0", "cuda:1"}
assert [then[0] for then in before] == [now[0] for now in after], (before, after)
assert all(now[1] - then[1] <= 2 << 20 for then, now in zip(before, after)), (before, after)
print("peak extra", peak)
assert peak < 32 << 20, peak
"""


@needs_gpu
def test_on_two_gpus_the_current_device_stays_and_no_memory_is_kept(tmp_path: Path) -> None:
    program = tmp_path / "two_gpus.py"
    program.write_text(TWO_GPUS)
    command = on_gpu("--gpu", "H100-80GB", "--devices", "2", "-o", str(tmp_path / "plan.tide"))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(tidemark.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run([*command, GPU_PYTHON, str(program)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that computes")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_norms_by_a_gpu_are_pytorchs(dtype: torch.dtype) -> None:
    from tidemark.model_analysis.fused import norms

    torch.manual_seed(0)
    sizes = [1, 7, 8, 9, 255, 4097, 65_537, 300_001, 1 << 25]  # the last one is large enough for our kernels
    tensors = [torch.randn(size, device="cuda", dtype=dtype) for size in sizes]
    tensors += [torch.randn(33, 65, device="cuda", dtype=dtype).t(), torch.randn(100, device="cuda", dtype=dtype)[3:]]
    for order in (2, math.inf):
        expected = [float(torch.linalg.vector_norm(tensor.double(), order)) for tensor in tensors]
        assert norms(tensors, order) == pytest.approx(expected, rel=1e-4)
    for value, tell in ((math.nan, math.isnan), (math.inf, math.isinf), (-math.inf, math.isinf)):
        for tensor in tensors:
            for place in {0, tensor.numel() // 2, tensor.numel() - 1}:
                spoiled = tensor.clone(memory_format=torch.contiguous_format)
                spoiled.view(-1)[place] = value
                found = norms([*tensors, spoiled], math.inf)
                assert tell(found[-1]) and all(map(math.isfinite, found[:-1]))
