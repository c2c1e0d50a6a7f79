"""Programs written for the older tools, with only the import line changed, on the CPU and on a GPU."""

from __future__ import annotations

import importlib
import json
import logging
import re
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import needs_gpu, run_on_gpu

from tidemark import compat

torch = pytest.importorskip("torch")
MIB = 2**20

EVENTS = """
import torch
import torch.nn as nn
from tidemark.compat import GPUMemoryProfiler

device = "cuda" if torch.cuda.is_available() else "cpu"

def train_lora():
    profiler = GPUMemoryProfiler(log_dir="logs/my_training", enable_file_logging=True)
    profiler.record("训练开始")
    hidden, r = 256, 8
    base = torch.randn(hidden, hidden, device=device)
    lora_A = torch.randn(r, hidden, device=device, requires_grad=True)
    lora_B = torch.zeros(hidden, r, device=device, requires_grad=True)
    profiler.record_detailed("模型创建", tensor_info={"lora_A": lora_A, "lora_B": lora_B},
                             model_info={"total_params": lora_A.numel() + lora_B.numel(), "trainable_params": lora_A.numel()})
    optimizer = torch.optim.AdamW([lora_A, lora_B], lr=1e-3)
    try:
        for epoch in range(2):
            profiler.record(f"Epoch {epoch + 1}")
            for batch in range(3):
                x = torch.randn(4, 16, hidden, device=device)
                loss = (x @ base + x @ lora_A.T @ lora_B.T).pow(2).mean()
                profiler.record("forward", f"loss={loss.item():.4f}")
                loss.backward()
                profiler.record("backward")
                optimizer.step()
                optimizer.zero_grad()
                profiler.record("update")
    except RuntimeError as e:
        profiler.record("out of memory", str(e))
        raise
    profiler.print_report()
    summary = profiler.generate_summary_report()
    json_file = profiler.save_to_json()
    print(f"saved to {json_file}")
    profiler.cleanup()
    return json_file

json_file = train_lora()
"""

DEBUGGER = """
import torch, time
from tidemark.compat.quickMemoryDebug import (
    memory_snapshot, compare_snapshots, monitor_function, check_memory_status, cleanup_memory, generate_report)
from tidemark.compat.memoryDebugger import create_memory_debugger
from tidemark.compat.trainWithMemoryDebug import memory_profiled_training, debug_lora_training

device = "cuda" if torch.cuda.is_available() else "cpu"

def create_model():
    return torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).to(device)

def create_dataloader():
    dataset = torch.utils.data.TensorDataset(torch.ones(12, 256), torch.zeros(12).long())
    return torch.utils.data.DataLoader(dataset, batch_size=4)

def train_model(model, dataloader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in dataloader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
    return model

before = memory_snapshot("before")
kept = torch.zeros(24, 2**20, dtype=torch.uint8, device=device)
after = memory_snapshot("after")
comparison = compare_snapshots(before, after)
for change in comparison["gpu_changes"]:
    print(f"GPU change {change['memory_change_mb']:+.1f}MB {change['utilization_change']:+.1f}%")
model, comparison = monitor_function(create_model)
issues = check_memory_status(threshold_mb=20.0)
cleanup_memory()
report = generate_report()

with create_memory_debugger(log_dir="logs/debug", enable_real_time=True) as debugger:
    debugger.create_memory_checkpoint("start")
    debugger.start_real_time_monitoring(interval=0.01)
    more = [torch.zeros(2**20, device=device) for _ in range(3)]
    debugger.create_memory_checkpoint("end")
    changed = debugger.compare_checkpoints("start", "end")
    while len(debugger.memory_history) < 12:
        time.sleep(0.01)
    debugger.memory_history = debugger.memory_history[-10:]
    text = debugger.generate_memory_report(output_file="logs/debug/report.txt")

with memory_profiled_training(log_dir="logs/stages") as p:
    model = p.profile_stage("model_creation", create_model)
    data = p.profile_stage("data_loading", create_dataloader)
    trained = p.profile_stage("training", train_model, model, data)
    training_report = p.generate_training_report()

config = {"hidden_size": 64, "num_layers": 1, "vocab_size": 50, "r": 4, "alpha": 8}
tokens = torch.utils.data.DataLoader(torch.randint(50, (8, 16)), batch_size=4)
trained_model, results = debug_lora_training(
    config=config, dataloader=tokens, precision="fp16", pkg="matplotlib", version="3.8.0", knowledge_type="code",
    log_dir="logs/lora")
print(f"created: {results['creation_analysis']['summary']['total_memory_mb']:.2f} MB")
print(f"trained: {results['training_analysis']['summary']['total_memory_mb']:.2f} MB")
print("issues:", results["memory_issues"])
own, own_results = debug_lora_training(config={"lr": 0.1}, dataloader=create_dataloader(), log_dir="logs/own",
    training_function=lambda config, dataloader: train_model(create_model(), dataloader))
"""

RESOURCES = """
import torch
from tidemark.compat import (
    FragmentationAnalyzer, MemoryLeakDetector, MemoryManager, MemoryProfiler, OOMDetector, OptimizedDataLoader,
    PerformanceMonitor, PrefetchLoader)

device = "cuda" if torch.cuda.is_available() else "cpu"
monitors = {"profile": MemoryProfiler(sampling_interval=0.05), "oom": OOMDetector(),
            "fragment": FragmentationAnalyzer(), "leak": MemoryLeakDetector()}
monitors["oom"].add_warning_callback(lambda device_id, prediction: print(f"WARNING {device_id} {prediction.risk_level.value}"))
for monitor in monitors.values():
    monitor.start_monitoring()
performance = PerformanceMonitor()
performance.start_monitoring()

def step(model, images, labels):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    return loss

model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)).to(device)
manager = MemoryManager(threshold_mb=150)
allocated_mb, cached_mb = manager.check_memory()
counted = [torch.cuda.memory_allocated() / 2**20, torch.cuda.memory_reserved() / 2**20] if device == "cuda" else [None, None]
proposed = manager.optimize_memory(model, (2048, 1024))
batch_size = proposed or 64
optimal = manager.calculate_optimal_batch_size(allocated_mb, 130)

def peak_mb(samples):
    torch.cuda.reset_peak_memory_stats()
    torch.autograd.grad(model(torch.randn(samples, 1024, device=device)).mean(), list(model.parameters()))
    return torch.cuda.max_memory_allocated() / 2**20

peaks = [peak_mb(size) for size in (proposed, proposed * 11 // 10, optimal)] if device == "cuda" else None

dataset = torch.utils.data.TensorDataset(torch.arange(200.0).unsqueeze(1).expand(200, 1024), torch.arange(200) % 10)
optimized = OptimizedDataLoader(dataset, 32, num_workers=4)
sums, losses, devices = [], [], set()
for images, labels in optimized.get_prefetch_loader():
    devices |= {images.device.type, labels.device.type}
    sums.append([images[:, 0].sum().item(), labels.sum().item()])
    losses.append(step(model, images, labels).item())
    performance.log_metric("loss", losses[-1])
plain = [[images[:, 0].sum().item(), labels.sum().item()] for images, labels in optimized.create_loader()]
kinds = []
for loader in ([torch.ones(3)], [[torch.ones(3), torch.ones(2)]], [(torch.ones(3), torch.ones(2))]):
    for batch in PrefetchLoader(loader):
        kinds.append((type(batch).__name__, len(batch)))
        devices |= {tensor.device.type for tensor in ([batch] if torch.is_tensor(batch) else batch)}

performance_report = performance.get_performance_report()
performance.stop_monitoring()
reports = {}
for name, monitor in monitors.items():
    monitor.stop_monitoring()
    reports[name] = monitor.generate_report(f"{name}_report.json")
"""

PARAMETERS = 4 * (256 * 128 + 128 + 128 * 8 + 8)
#: A layer of the transformer of `config` above in float16: two norms, four projections, two of the MLP; norm, head, embedding.
LORA_BASE = 2 * (2 * 2 * 64 + 4 * (64 * 64 + 64) + (64 * 256 + 256) + (256 * 64 + 64) + 2 * 64 + (64 * 50 + 50) + 50 * 64)
#: Adapters stay in float32: r = 4 for six layers.
LORA = 4 * 4 * (4 * (64 + 64) + (64 + 256) + (256 + 64))


def run(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(program, "program.py", "exec"), names)
    return names


def test_events_of_a_lora_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(EVENTS, tmp_path, monkeypatch)
    data = json.loads(Path(names["json_file"]).read_text(encoding="utf-8"))
    assert {name: len(events) for name, events in data.items()} == {
        "训练开始": 1, "模型创建": 1, "Epoch 1": 1, "forward": 6, "backward": 6, "update": 6, "Epoch 2": 1,
    }  # fmt: skip
    out, _ = capsys.readouterr()
    assert "GPU Memory Timeline" in out
    (log,) = (tmp_path / "logs" / "my_training").glob("memory_profiler_*.log")
    text = log.read_text(encoding="utf-8")
    assert len(re.findall(r"Event: forward .* \| Info: loss=\d", text)) == 6
    assert "lora_A: shape=(8, 256), dtype=torch.float32, size=0.01MB, bytes=8192, device=cpu" in text


def test_the_debugger_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, logger="tidemark.debugger"):
        names = run(DEBUGGER, tmp_path, monkeypatch)
    assert names["before"]["gpu_memory"] == [] and names["comparison"]["gpu_changes"] == []
    assert names["issues"][0]["memory_mb"] >= 24
    assert "CPU mode: process" in caplog.text and "> 20.0MB" in caplog.text
    assert names["changed"]["born"]["bytes"] == 12 * MIB
    assert len(names["debugger"].memory_history) >= 10
    assert (tmp_path / "logs" / "debug" / "report.txt").read_text().startswith(names["text"])
    assert not names["debugger"].monitoring_active

    stages = {row["stage"]: row for row in names["p"].training_stages}
    assert list(stages) == ["model_creation", "data_loading", "training"]
    assert stages["model_creation"]["memory_comparison"]["born"]["by_category"] == {"parameter": PARAMETERS}
    assert stages["training"]["memory_comparison"]["born"]["by_category"] == {"gradient": PARAMETERS}
    assert "Steps: 3" in names["training_report"]
    assert names["trained"] is names["model"]
    (saved,) = (tmp_path / "logs" / "stages").glob("training_stages_*.json")
    assert json.loads(saved.read_text())["steps"] == 3

    results = names["results"]
    assert results["creation_analysis"]["summary"]["total_memory_mb"] * MIB == LORA_BASE + LORA
    assert results["training_analysis"]["summary"]["total_memory_mb"] * MIB == LORA_BASE + LORA
    assert results["memory_issues"] == {
        "memory_leaks": [], "excessive_usage": [], "abnormal_growth": [], "fragmentation": [],
    }  # fmt: skip
    assert results["steps"] == 2
    moved = [name for name, parameter in names["trained_model"].named_parameters() if parameter.requires_grad]
    assert len(moved) == 12 and all("lora_" in name for name in moved)
    held = names["own_results"]["training_analysis"]["summary"]["total_memory_mb"] * MIB
    assert held == 2 * PARAMETERS  # including the gradients left by its training
    assert names["own_results"]["creation_analysis"]["summary"]["total_memory_mb"] * MIB == PARAMETERS


ON_A_GPU = (
    EVENTS
    + """
used = torch.cuda.memory_allocated()
"""
    + DEBUGGER
    + """
import json
print("RESULT", json.dumps({"json": json_file, "change": changed, "history": debugger.memory_history,
    "stages": p.training_stages, "results": results, "first": before, "used": used, "issues": issues}))
"""
)


@needs_gpu
def test_the_same_programs_on_a_gpu(tmp_path: Path) -> None:
    out = run_on_gpu(ON_A_GPU, tmp_path)
    found = re.search(r"^RESULT (.*)$", out, re.M)
    assert found is not None, out
    result = json.loads(found[1])
    events = json.loads((tmp_path / result["json"]).read_text(encoding="utf-8"))
    created = events["模型创建"][0]["allocated"] - events["训练开始"][0]["allocated"]
    assert created * MIB == 256 * 256 * 4 + 2 * 8 * 256 * 4
    assert events["update"][-1]["max_allocated"] >= events["forward"][-1]["allocated"] > created
    assert re.search(r"^forward              \| Allocated: \d+\.\dMB \| Reserved: \d+\.\dMB$", out, re.M)
    assert result["first"]["gpu_memory"][0]["allocated_bytes"] == result["used"]
    assert "GPU change +24.0MB +0.0%" in out
    assert "GPU 0: memory +24.0MB, utilization +0.0%" in out
    assert result["issues"][0]["device"] == "cuda:0"
    assert result["change"]["gpu_changes"][0]["memory_change_mb"] == 12
    assert result["change"]["born"]["by_device"] == {"cuda:0": 12 * MIB}
    assert result["history"][-1]["gpu_memory"][0]["total_mb"] > 80000
    creation = result["stages"][0]["memory_comparison"]
    assert creation["born"]["by_category"] == {"parameter": PARAMETERS}
    # The last layer's bias of 32 bytes takes 512.
    assert creation["gpu_changes"][0]["memory_change_bytes"] == PARAMETERS + 480
    assert result["results"]["creation_analysis"]["summary"]["total_memory_mb"] * MIB == LORA_BASE + LORA
    assert result["results"]["training_analysis"]["summary"]["peak_memory_mb"] * MIB > LORA_BASE + LORA


def check_resources(result: dict[str, Any], folder: Path) -> None:
    """Checks that apply to every device; the batch counts are for 200 samples, 32 at a time."""
    assert result["kinds"] == [["Tensor", 3], ["list", 2], ["tuple", 2]]
    assert len(result["losses"]) == 7
    loss = result["performance"]["training_metrics"]["loss"]
    assert (loss["min"], loss["max"]) == (min(result["losses"]), max(result["losses"]))
    assert loss["mean"] == pytest.approx(statistics.fmean(result["losses"]))
    assert loss["std"] == pytest.approx(statistics.pstdev(result["losses"]))
    assert all(0 <= result["performance"]["system_metrics"][f"{key}_usage"] <= 100 for key in ("cpu", "memory", "disk"))
    for name, report in result["reports"].items():
        assert json.loads((folder / f"{name}_report.json").read_text()) == report


def test_resources_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(RESOURCES, tmp_path, monkeypatch)
    result = {name: names[name] for name in ("losses", "reports")} | {"performance": names["performance_report"]}
    check_resources(result | {"kinds": [list(kind) for kind in names["kinds"]]}, tmp_path)
    assert (names["allocated_mb"], names["cached_mb"], names["proposed"], names["batch_size"]) == (0.0, 0.0, None, 64)
    batches = [range(begin, min(begin + 32, 200)) for begin in range(0, 200, 32)]
    expected = [[sum(batch), sum(number % 10 for number in batch)] for batch in batches]
    assert names["sums"] == expected == names["plain"]
    assert names["devices"] == {"cpu"}
    memory = names["reports"]["profile"]["devices"]["cpu"]["current_memory"]
    assert memory["utilization"] == pytest.approx(100 * memory["allocated"] / memory["total"])
    assert names["reports"]["oom"]["devices"]["cpu"]["risk_assessment"]["risk_level"] in ("low", "medium", "high", "critical")


def test_a_model_with_nan_says_so_where_it_is_analyzed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    block = torch.nn.ModuleDict({"q_proj": torch.nn.Linear(4, 2), "k_proj": torch.nn.Linear(4, 2)})
    model = torch.nn.ModuleDict({"layers": torch.nn.ModuleList([torch.nn.ModuleDict({"attention": block})])})
    with torch.no_grad():
        block["q_proj"].weight[0, :3] = float("nan")
        block["k_proj"].bias[1] = -float("inf")
    from tidemark.compat.quickMemoryDebug import analyze_model

    for analyze in (analyze_model, compat.MemoryDebugger(tmp_path).analyze_model_parameters):
        caplog.clear()
        analysis = analyze(model, "Tiny")
        errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert errors == [
            "Tiny contains NaN: layers.0.attention.q_proj.weight (3 of 8 values, 0.0 MB, float32, cpu)",
            "Tiny contains Inf: layers.0.attention.k_proj.bias (1 of 2 values, 0.0 MB, float32, cpu)",
        ]
        assert [(issue["kind"], issue["level"], issue["name"]) for issue in analysis["issues"]] == [
            ("nan", "error", "layers.0.attention.q_proj.weight"),
            ("inf", "error", "layers.0.attention.k_proj.bias"),
        ]
    caplog.clear()
    message = compat.analyze_model(model, "Tiny", "zh")["issues"][0]["message"]
    assert message.startswith("Tiny 含 NaN\uff1alayers.0.attention.q_proj")
    big = torch.nn.Linear(1, 1 << 20)
    with torch.no_grad():
        big.bias[5] = float("nan")
    caplog.clear()
    compat.analyze_model(big, "Big", oversized_mb=4)
    shown = [record for record in caplog.records if record.levelno > logging.INFO]
    levels = [(record.levelname, record.getMessage().split(" (")[0]) for record in shown]
    assert ("ERROR", "Big contains NaN: bias") in levels
    assert sum(level == "WARNING" and "oversized parameter" in text for level, text in levels) == 2
    assert compat.analyze_model(big.state_dict(), log=False)["issues"][-1]["name"] == "bias"


RESOURCES_ON_A_GPU = (
    RESOURCES
    + """
import json
print("RESULT", json.dumps({"checked": [allocated_mb, cached_mb], "counted": counted, "proposed": proposed, "peaks": peaks,
    "devices": sorted(devices), "kinds": kinds, "losses": losses, "performance": performance_report, "reports": reports,
    "reserved": torch.cuda.max_memory_reserved()}))
"""
)


@needs_gpu
def test_resources_on_a_gpu(tmp_path: Path) -> None:
    out = run_on_gpu(RESOURCES_ON_A_GPU, tmp_path)
    found = re.search(r"^RESULT (.*)$", out, re.M)
    assert found is not None, out
    result = json.loads(found[1])
    check_resources(result, tmp_path)
    assert result["checked"] == result["counted"], "PyTorch's own figures"
    proposed, tenth_more, optimal = result["peaks"]
    # The allocator leaves up to 1 MiB at the end of a large block unused, which the line through two sizes does not include.
    assert proposed <= 150 + 2 < tenth_more, (result["proposed"], result["peaks"])
    assert optimal <= 130
    assert result["devices"] == ["cuda"]
    device = result["reports"]["profile"]["devices"]["0"]
    assert device["current_memory"]["total"] > device["peak_memory"] >= result["reserved"]
    assert device["statistics"]["num_snapshots"] > 1
    assert result["performance"]["gpu_metrics"]["0"]["memory_total_bytes"] == device["current_memory"]["total"]
    risk = result["reports"]["oom"]["devices"]["0"]["risk_assessment"]
    assert (risk["risk_level"], risk["predicted_oom_time_seconds"]) == ("low", None)


def test_configurations_of_a_lora_training() -> None:
    base = {"hidden_size": 64, "num_layers": 1, "vocab_size": 50, "r": 4, "alpha": 8, "seq_length": 8, "batch_size": 1}
    base["forked"] = lambda: None  # cannot be pickled: a fork starts faster than an interpreter that imports torch
    variations = {"small_r": {"r": 8, "alpha": 16}, "large_r": {"r": 8192, "alpha": 64}}
    results = compat.debug_memory_with_different_configs(base, variations)
    best = min(results.items(), key=lambda x: x[1]["memory_mb"])
    assert best[0] == "small_r" and best[1]["memory_mb"] > 0
    large = results["large_r"]
    assert large["ok"] and large["config"]["r"] == 8192
    # Four times the adapters' bytes, with gradients and two averages, plus temporary memory of the optimizer.
    growth = 4 * 4 * (8192 - 8) * (4 * (64 + 64) + (64 + 256) + (256 + 64)) / MIB
    # Less by the memory that this process has freed but still has in its heap, which the forked one shares.
    assert 0.8 * growth <= large["memory_mb"] - best[1]["memory_mb"] <= 2 * growth


def test_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"hidden_size": 32, "num_layers": 1, "vocab_size": 20, "seq_length": 4, "batch_size": 1}))
    script = [sys.executable, "-m", "tidemark.compat.trainWithMemoryDebug", "--help"]
    assert "--debug_level" in subprocess.run(script, capture_output=True, text=True, check=True).stdout
    options = ["--precision", "fp16", "--config", str(config), "--log_dir", str(tmp_path)]
    module = importlib.import_module("tidemark.compat.trainWithMemoryDebug")
    assert module.main(["--debug_level", "full", *options]) == 0
    assert re.search(r"^training_analysis: the model holds \d+\.\d\d MB$", capsys.readouterr().out, re.M)
    assert list(tmp_path.glob("training_report_*.txt"))
    assert module.main(["--debug_level", "custom", *options]) == 0
    assert module.main(["--config", str(tmp_path / "missing.json")]) == 2


@pytest.mark.skipif(find_spec("tidemark.model_analysis") is None, reason="the analysis of models is not in this build")
def test_a_model_is_analyzed() -> None:
    from tidemark.compat.quickMemoryDebug import analyze_model

    model = torch.nn.Linear(100, 10)
    model.bias.requires_grad_(False)
    analysis = analyze_model(model, "my_model")
    assert analysis["memory_mb"] * MIB == 4 * 1010
    assert analysis["param_efficiency"] == pytest.approx(100 * 1000 / 1010)
    assert compat.analyze_model is analyze_model


def test_arguments_that_nobody_knows_are_refused() -> None:
    with pytest.raises(TypeError, match="'learning_rates'"):
        compat.debug_lora_training(config={}, learning_rates=print)


def test_names_are_the_older_modules_names() -> None:
    for module, names in {
        "memoryCheck": ["GPUMemoryProfiler"],
        "quickMemoryDebug": [
            "memory_snapshot",
            "compare_snapshots",
            "monitor_function",
            "check_memory_status",
            "cleanup_memory",
        ],
        "trainWithMemoryDebug": ["memory_profiled_training", "debug_lora_training", "debug_memory_with_different_configs"],
        "memoryDebugger": ["create_memory_debugger"],
    }.items():
        older = importlib.import_module(f"tidemark.compat.{module}")
        assert all(getattr(older, name) is getattr(compat, name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = compat.nothing  # type: ignore[attr-defined]
