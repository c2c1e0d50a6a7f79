"""The memory manager on a GPU with other programs and libraries: sizes planned first, and models of transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import needs_gpu, run_on_gpu

import tidemark
from tidemark.memory_manager import planned_sizes

PLANNED = """
import json, sys
import torch
import tidemark
from batch_trainer import step_of

torch.cuda.set_per_process_memory_fraction(30 * 2**30 / torch.cuda.get_device_properties(0).total_memory)
step = step_of(8)
calls = []

def counted(batch_size):
    calls.append(batch_size)
    step(batch_size)

def search(name, **options):
    calls.clear()
    found = tidemark.auto_batch_size(counted, maximum=22, start=21, **options)
    told[name] = {"found": found.batch_size, "ended": found.ended, "calls": list(calls),
                  "fits": [probe.fits for probe in found.probes], "peaks": [probe.peak_bytes for probe in found.probes],
                  "planned": {one.batch_size: one.peak_bytes for one in found.planned if one.fits}}

told = {}
command = [sys.executable, sys.argv[1], "--batch-size", "{batch_size}"]
search("planned", plan=command)
search("wrong", plan=[*command, "--layers", "none"])
print(json.dumps(told))
"""

TRANSFORMERS = """
import json
import torch
from transformers import LlamaConfig, LlamaForCausalLM
import tidemark

def llama(**sizes):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(vocab_size=64, num_attention_heads=4, max_position_embeddings=256, **sizes))

def peak(model, batch):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model(batch).logits.float().mean().backward()
    torch.cuda.synchronize()
    model.zero_grad(set_to_none=True)
    return torch.cuda.max_memory_allocated()

model = llama(hidden_size=256, intermediate_size=1024, num_hidden_layers=6).cuda()
batch = torch.zeros(16, 256, dtype=torch.long, device="cuda")
model.train()
peak(model, batch)
before = peak(model, batch)
manager = tidemark.MemoryManager(threshold_mb=400)
size = manager.optimize_memory(model, batch.shape, dtype=torch.long)
done = manager.last_optimization
after = peak(model, batch)
again = manager.optimize_memory(model, (1024, 256), dtype=torch.long)

gradients = []
for checkpointed in (False, True):
    tiny = llama(hidden_size=32, intermediate_size=64, num_hidden_layers=3).double().train()
    if checkpointed:
        tiny.gradient_checkpointing_enable()
    tokens = torch.arange(64).reshape(2, 32)
    tiny(input_ids=tokens, labels=tokens).loss.backward()
    gradients.append([parameter.grad for parameter in tiny.parameters()])
same = all(torch.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in zip(*gradients))
print(json.dumps({
    "size": size, "names": done.checkpointed, "notes": done.notes, "on": model.is_gradient_checkpointing, "same": same,
    "said": [done.peak_before_mb, done.peak_after_mb], "before": before / 2**20, "after": after / 2**20, "again": again,
    "notes_again": manager.last_optimization.notes, "peak_again": manager.last_optimization.peak_after_mb,
    "slope": manager.slope_mb, "intercept": manager.intercept_mb}))
"""


def on_gpu(program: str, folder: Path, fits: bool = True) -> tuple[dict[str, Any], str]:
    """The JSON printed by the program, and its whole output."""
    package, tests = str(Path(tidemark.__file__).parents[1]), str(Path(__file__).parent)
    own = str(Path(os.environ.get("TIDEMARK_BUILD", "")) / "bin")
    printed = run_on_gpu(program, folder, fits=fits, path=[package, tests], PATH=os.pathsep.join([own, os.environ["PATH"]]))
    return json.loads(next(line for line in printed.splitlines() if line.startswith("{"))), printed


@needs_gpu
def test_a_size_that_was_planned_on_a_gpu(tmp_path: Path) -> None:
    trainer = str(Path(__file__).with_name("batch_trainer.py"))
    told, printed = on_gpu(PLANNED.replace("sys.argv[1]", repr(trainer)), tmp_path, fits=False)
    planned = told["planned"]
    assert planned["calls"] == [planned["found"]] * 2, "the first step makes optimizer state, the second one counts"
    assert planned["fits"] == [True, True]
    assert planned["ended"] == ("found" if planned["found"] == 21 else "maximum")
    assert planned["peaks"][1] == pytest.approx(planned["planned"][str(planned["found"])], rel=0.01)
    # Found without a plan, in the same process: the program cannot be planned, and the log has the reason.
    wrong = told["wrong"]
    assert "argument --layers: invalid int value: 'none'" in printed
    assert "the program cannot be planned" in printed
    assert wrong["planned"] == {}
    assert wrong["found"] == pytest.approx(planned["found"], rel=0.06)
    assert wrong["calls"] == [21, 22]


@needs_gpu
def test_transformers_on_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    told, _ = on_gpu(TRANSFORMERS, tmp_path)
    assert (told["size"], told["names"], told["on"]) == (None, ["*"], True), told["notes"]
    assert told["before"] > 400 > told["after"]
    # Gradients of the parameters are included if a backward pass leaves them.
    assert told["said"][0] == pytest.approx(told["before"], rel=0.03)
    assert told["said"][1] == pytest.approx(told["after"], rel=0.1)
    assert told["same"]
    # It is on: only a smaller batch can help.
    assert "The model's gradient checkpointing was on already." in told["notes_again"]
    assert told["peak_again"] > 400
    assert 16 < told["again"] < 1024
    assert told["again"] == int((400 - told["intercept"]) / told["slope"])


def test_commands_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    for command, message in ((["python", "train.py"], "has to stand"), ("python {batch_size}", "as a list")):
        with pytest.raises(ValueError, match=message):
            tidemark.auto_batch_size(lambda size: None, plan=command, device="cpu", maximum=4)
    found = tidemark.auto_batch_size(lambda size: None, plan=["true", "{batch_size}"], device="cpu", maximum=4)
    assert (found.batch_size, found.planned) == (4, []), "the CPU has nothing to plan"
    monkeypatch.setenv(planned_sizes._VARIABLE, "1")
    with pytest.raises(tidemark.TidemarkError, match="is being planned"):
        tidemark.auto_batch_size(lambda size: None, plan=["true", "{batch_size}"], device="cpu", maximum=4)
