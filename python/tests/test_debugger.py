"""The debugger: memory born and died by owner, stages of a training, configurations; bytes counted by hand or by PyTorch."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import needs_gpu, run_on_gpu

import tidemark
from tidemark._errors import TidemarkError
from tidemark._program import find_program
from tidemark.debugger.issues import find_issues
from tidemark.debugger.result import Result

torch = pytest.importorskip("torch")
MIB = 2**20


def net() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))


PARAMETERS = 4 * (256 * 128 + 128 + 128 * 8 + 8)


def test_what_was_born_and_died_by_category_and_module() -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    start = tidemark.checkpoint("start")
    batch = torch.ones(16, 256)
    model(batch).sum().backward()
    optimizer.step()
    tidemark.checkpoint("stepped")
    change = tidemark.compare_checkpoints("start", "stepped")
    state = 2 * PARAMETERS + 4 * 4  # two averages of each parameter, and four parameters' counts of steps
    assert change["born"]["by_category"] == {"optimizer_state": state, "gradient": PARAMETERS, "unknown": 16 * 256 * 4}
    first = 4 * (256 * 128 + 128)
    assert change["born"]["by_module"]["0"] == first + 2 * first + 2 * 4
    assert change.born.by_device == {"cpu": PARAMETERS + state + 16 * 256 * 4}  # keys are attributes
    assert change["died"]["bytes"] == 0
    assert change["change_bytes"] == change["born"]["bytes"]
    assert change["gpu_changes"] == []

    del batch
    optimizer.zero_grad(set_to_none=True)
    change = tidemark.compare_checkpoints("stepped", tidemark.checkpoint("freed"))
    assert change["died"]["by_category"] == {"gradient": PARAMETERS, "unknown": 16 * 256 * 4}
    assert start.memory_usage.gpu_memory == []
    json.dumps(change)


def test_a_checkpoint_keeps_no_tensor_and_knows_one_from_the_next() -> None:
    first = torch.zeros(1000)
    view = first[10:20]  # of the same storage
    before = tidemark.checkpoint("one")
    count = len(before.tensors)
    del first
    gc.collect()
    assert len(tidemark.checkpoint("view").tensors) == count
    del view
    second = torch.zeros(1000)  # probably at the address of the first
    change = tidemark.compare_checkpoints(before, tidemark.checkpoint("two"))
    assert change["born"]["bytes"] == change["died"]["bytes"] == 4000
    assert change["born"]["tensors"] == change["died"]["tensors"] == 1
    del second


def test_a_checkpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="no checkpoint 'nowhere'"):
        tidemark.compare_checkpoints("nowhere", "nowhere either")
    with pytest.raises(TypeError, match="None is neither a checkpoint"):
        tidemark.compare_checkpoints(None, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="None is neither a snapshot"):
        tidemark.compare_snapshots(tidemark.memory_snapshot("now"), None)  # type: ignore[arg-type]


def test_models_are_told_apart() -> None:
    before = tidemark.checkpoint("none")
    kept = [torch.nn.Linear(3, 5, bias=False), torch.nn.Bilinear(2, 2, 7, bias=False)]
    born = tidemark.compare_checkpoints(before, tidemark.checkpoint("two"))["born"]
    assert born["by_module"] == {"Bilinear": 4 * 28, "Linear": 4 * 15}
    del kept


def test_stages_of_a_training_and_of_its_loop() -> None:
    hooks = [torch.nn.modules.module._global_forward_hooks, torch.nn.modules.module._global_forward_pre_hooks]
    before = [len(each) for each in hooks]
    with tidemark.training() as t:
        model = t.stage("model_creation", net)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in t.stage("data", lambda count: [torch.ones(4, 256)] * count, 3):
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            model(batch)
    assert [len(each) for each in hooks] == before
    assert [row["stage"] for row in t.stages] == ["model_creation", "data"]
    assert t.stages[0]["memory_comparison"]["born"]["by_category"] == {"parameter": PARAMETERS}
    assert {row["stage"]: row["count"] for row in t.loop} == {"data": 3, "forward": 4, "backward": 3, "optimizer": 3}
    assert t.steps == 3
    assert all(row["seconds"] > 0 for row in t.loop)
    report = t.report()
    assert "model_creation" in report and "Steps: 3" in report
    t.lang = "zh"
    assert "步数: 3" in t.report()


def test_recomputation_counts_to_the_backward_pass() -> None:
    from torch.utils.checkpoint import checkpoint

    model = net()
    with tidemark.training() as t:
        for _ in range(2):
            outer = torch.nn.Linear(8, 1)
            outer(checkpoint(model, torch.ones(4, 256, requires_grad=True), use_reentrant=False)).sum().backward()
    assert {row["stage"]: row["count"] for row in t.loop}["backward"] == 2


def test_compiled_models_are_compiled_as_without() -> None:
    model = torch.compile(net(), backend="eager")
    from torch._dynamo.utils import counters

    counters.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that hooks of all modules are called for compiled ones, too
        with tidemark.training() as t:
            for _ in range(2):
                model(torch.ones(4, 256)).sum().backward()
    assert {row["stage"]: row["count"] for row in t.loop} == {"forward": 2, "backward": 2}
    assert not counters["graph_break"]


def test_a_forward_pass_that_raises_ends() -> None:
    model = net()
    with tidemark.training() as t:
        for width in (256, 255, 256):
            with contextlib.suppress(RuntimeError):
                model(torch.ones(4, width))
    assert {row["stage"]: row["count"] for row in t.loop} == {"forward": 3}


def test_exceptions_pass_unchanged() -> None:
    problem = ValueError("mine")

    def fails() -> None:
        raise problem

    with pytest.raises(ValueError, match="mine") as caught, tidemark.training() as t:
        t.stage("broken", fails)
    assert caught.value is problem
    assert [(row["stage"], row["ok"]) for row in t.stages] == [("broken", False)]
    with pytest.raises(ValueError, match="mine"):
        tidemark.monitor_function(fails)


def _sample(name: str, allocated: float, reserved: float, total: float = 10000.0) -> dict[str, Any]:
    row = Result(device_id=0, allocated_mb=allocated, reserved_mb=reserved, utilization_percent=100 * allocated / total)
    return {"name": name, "gpu_memory": [row]}


def test_issues_that_samples_show() -> None:
    leaking = [_sample(str(step), 100 + 3 * step + 50 * (step % 2), 400) for step in range(16)]
    issues = find_issues(leaking)
    assert [issue["growth_mb"] for issue in issues["memory_leaks"]] == [36.0]  # the least of each quarter: 100, 112, 124, 136
    steady = [_sample(str(step), 100 + 50 * (step % 2), 160) for step in range(16)]
    assert not any(find_issues(steady).values())
    issues = find_issues([_sample("a", 100, 120), _sample("b", 9600, 9700), _sample("c", 600, 9700)])
    assert [dict(each) for each in issues["abnormal_growth"]] == [
        {"from_checkpoint": "a", "to_checkpoint": "b", "gpu_id": 0, "growth_mb": 9500}
    ]
    assert [each["checkpoint"] for each in issues["excessive_usage"]] == ["b"]
    assert [(each["checkpoint"], each["wasted_mb"]) for each in issues["fragmentation"]] == [("c", 9100)]


def test_use_above_a_threshold_is_found_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    kept = torch.zeros(3 * MIB, dtype=torch.uint8)
    with caplog.at_level(logging.WARNING, logger="tidemark.debugger"):
        (issue,) = tidemark.check_memory_status(threshold_mb=2.5)
    assert issue["kind"] == "above_threshold" and issue["device"] == "cpu"
    assert issue["memory_mb"] >= 3
    assert "> 2.5MB" in caplog.text
    del kept


def allocates(size: int) -> None:
    kept = torch.zeros(size, dtype=torch.uint8)
    del kept
    torch.zeros(3 * MIB, dtype=torch.uint8)


def fails(kind: str) -> None:
    if kind == "memory":
        raise MemoryError
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError(kind)


def test_configurations_in_processes_of_their_own() -> None:
    results = tidemark.compare_configs(allocates, {"small": {"size": 5 * MIB}, "large": {"size": 40 * MIB}})
    assert all(result["ok"] and result["error"] is None for result in results.values())
    try:
        find_program()
    except TidemarkError:
        pytest.skip("no tidemark program beside the package: CPU tensors are not recorded")
    assert {name: (result["memory_mb"], result["measured_by"]) for name, result in results.items()} == {
        "small": (5.0, "recording"),
        "large": (40.0, "recording"),
    }


def test_a_configuration_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def touches(size: int) -> None:  # cannot be pickled: forked
        assert len(bytearray(b"x") * size) == size

    results = tidemark.compare_configs(touches, {"a": {"size": 30 * MIB}, "b": 100, "c": {"size": 90 * MIB}})
    assert results["b"]["ok"]  # not a mapping: the only argument
    assert results["c"]["resident_mb"] - results["a"]["resident_mb"] == pytest.approx(60, abs=8)
    assert results["c"]["measured_by"] == "resident"

    kinds = {kind: {"kind": kind} for kind in ("memory", "other", "killed")}
    results = tidemark.compare_configs(lambda kind: fails(kind), kinds)
    assert [result["ok"] for result in results.values()] == [False, False, False]
    assert results["memory"]["out_of_memory"] and not results["other"]["out_of_memory"]
    assert results["other"]["error"] == "ValueError: other"
    assert "SIGKILL" in results["killed"]["error"]


UNGUARDED = """
import sys
import warnings
from tidemark import compare_configs
runs = open("runs", "a"); runs.write("x"); runs.close()
def work(n):
    return bytearray(n)
results = compare_configs(work, {"a": {"n": 1 << 20}, "b": {"n": 1 << 21}})
print([result["ok"] for result in results.values()])
"""


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nsys.modules['torch'] = None\n" + UNGUARDED)
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, text=True, capture_output=True, check=True)
    assert ran.stdout == "[True, True]\n"
    assert (tmp_path / "runs").read_text() == "xxx"  # the script, and once for each process, up to the call


ON_A_GPU = """
import json, torch, tidemark
def net(): return torch.nn.Linear(1024, 1024).cuda()
from use import use
with tidemark.training() as t:
    model = t.stage("model", net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        model(torch.zeros(8, 1024, device="cuda")).sum().backward()
        optimizer.step()
        highest = torch.cuda.max_memory_allocated()
a = tidemark.memory_snapshot("a")
tidemark.checkpoint("a")
kept = torch.empty(10, 2**20, dtype=torch.uint8, device="cuda")
leaf = kept.float().requires_grad_()
loss = leaf.exp().sum()
b = tidemark.memory_snapshot("b")
change = tidemark.compare_checkpoints("a", tidemark.checkpoint("b"))
(row,) = tidemark.compare_snapshots(a, b)["gpu_changes"]
allocated = torch.cuda.memory_allocated()
freed = tidemark.cleanup_memory()["freed_mb"]
configs = tidemark.compare_configs(use, {"too much": {"size": 100 << 10}, "large": {"size": 500}})
print("RESULT", json.dumps({"loop": t.loop, "highest": highest, "stages": t.stages, "change": change, "row": row,
    "freed": freed, "allocated": allocated, "snapshot": b, "configs": configs, "issues": tidemark.check_memory_status(20)}))
"""


@needs_gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    use = 'import torch\ndef use(size): torch.empty(size, 2**20, dtype=torch.uint8, device="cuda")\n'
    (tmp_path / "use.py").write_text(use)
    out = run_on_gpu(ON_A_GPU, tmp_path, fits=False)
    found = re.search(r"^RESULT (.*)$", out, re.M)
    assert found is not None, out
    result = json.loads(found[1])
    parameters = 4 * (1024 * 1024 + 1024)
    assert result["stages"][0]["memory_comparison"]["born"]["by_category"] == {"parameter": parameters}
    assert result["stages"][0]["memory_comparison"]["gpu_changes"][0]["memory_change_bytes"] == parameters
    loop = {row["stage"]: row for row in result["loop"]}
    assert {name: row["count"] for name, row in loop.items()} == {"data": 2, "forward": 2, "backward": 2, "optimizer": 2}
    assert max(row["highest_mb"] for row in loop.values()) * MIB == result["highest"]

    # Python holds 10 MiB of bytes, 40 MiB of floats and the loss, which takes 512; only autograd holds exp()'s result.
    assert result["change"]["born"]["by_device"] == {"cuda:0": 50 * MIB + 4}
    assert result["change"]["not_seen_change_bytes"] == {"cuda:0": 40 * MIB + 508}
    assert result["row"]["memory_change_bytes"] == 90 * MIB + 512
    (gpu,) = result["snapshot"]["gpu_memory"]
    assert gpu["allocated_mb"] * MIB == result["allocated"]
    assert result["row"]["utilization_change"] == pytest.approx(100 * (90 + 2**-11) / gpu["total_mb"])
    assert re.search(rf"GPU 0: {gpu['allocated_mb']:.1f}MB / {gpu['total_mb']:.1f}MB \(\d+\.\d%\)", out)
    assert [issue["device"] for issue in result["issues"]] == ["cuda:0"]

    configs = result["configs"]
    assert configs["large"]["memory_mb"] == 500
    assert configs["large"]["max_allocated_mb"] == 500 and configs["large"]["max_reserved_mb"] == 500
    assert configs["too much"]["out_of_memory"] and not configs["too much"]["ok"]
    assert configs["large"]["measured_by"] == "torch.cuda"


def test_reports_are_json_where_the_file_is_named_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tidemark.create_memory_debugger(log_dir=tmp_path) as debugger:
        debugger.create_memory_checkpoint("before")
        kept = torch.ones(2, 2**18)
        debugger.create_memory_checkpoint("after")
        text = debugger.generate_memory_report(output_file=tmp_path / "new" / "memory.json")
    report = json.loads((tmp_path / "new" / "memory.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in report["checkpoints"]] == ["before", "after"]
    assert report["changes"][0]["born"]["bytes"] == kept.nbytes == 2 * MIB
    assert report["samples"] == 2 and report["issues"]["memory_leaks"] == []
    assert text.startswith("Memory debugging report")

    with tidemark.memory_profiled_training(log_dir=tmp_path, enable_real_time=False) as p:
        p.profile_stage("create", net)
        p.generate_training_report(tmp_path / "stages.json")
        p.generate_training_report(tmp_path / "stages.txt")
    stages = json.loads((tmp_path / "stages.json").read_text(encoding="utf-8"))["stages"]
    assert [(each["stage"], each["ok"]) for each in stages] == [("create", True)]
    assert (tmp_path / "stages.txt").read_text(encoding="utf-8").startswith("Training report")

    tidemark.memory_snapshot("quick")
    tidemark.generate_report(tmp_path / "quick.json")
    quick = json.loads((tmp_path / "quick.json").read_text(encoding="utf-8"))
    assert quick["snapshots"][-1]["name"] == "quick" and quick["now"]["system_memory"]["process_mb"] > 1


def test_lines_are_seen_without_setting_up_logging() -> None:
    program = "import torch, tidemark\ntidemark.analyze_model(torch.nn.Linear(512, 256, bias=False), 'net')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stderr == "[INFO] model net: 0.5 MB, 131,072 parameters, 131,072 of them trainable (100.00%)\n"
