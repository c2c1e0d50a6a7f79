"""LoRA adapters in models and in files, against PEFT's own counts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import tidemark

torch = pytest.importorskip("torch")
peft = pytest.importorskip("peft")
nn = torch.nn
BUILD = os.environ.get("TIDEMARK_BUILD")


def test_lora_adapters_beside_their_base() -> None:
    base = nn.Sequential()
    base.add_module("q_proj", nn.Linear(32, 16, bias=False))
    base.add_module("up", nn.Linear(16, 4, bias=False))
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "up"], rank_pattern={"up": 8})
    model = peft.get_peft_model(base, config)
    result = tidemark.analyze_model(model, log=False)
    lora = result.facts.lora
    assert lora is not None
    assert (result.trainable_params, result.total_params) == model.get_nb_trainable_parameters()
    assert (lora.parameters, lora.base_parameters) == (4 * (32 + 16) + 8 * (16 + 4), 32 * 16 + 16 * 4)
    assert lora.bytes_by_rank == {4: 4 * 4 * 48, 8: 4 * 8 * 20}
    assert lora.target_modules == {"q_proj": 1, "up": 1}
    q_proj = lora.modules[0]
    assert (q_proj.rank, q_proj.alpha, q_proj.adapter, q_proj.base_parameters) == (4, 8.0, "default", 512)
    assert [module.module.rpartition(".")[2] for module in lora.larger_than_base] == ["up"]  # 160 beside a weight of 64
    assert [issue.kind for issue in result.facts.issues] == ["adapter_not_smaller"]
    for parameter in base.parameters():
        parameter.requires_grad_(True)
    assert "base_trainable" in [issue.kind for issue in tidemark.analyze_model(model, log=False).facts.issues]


@pytest.mark.skipif(not BUILD, reason="TIDEMARK_BUILD is not set")
def test_the_file_of_an_adapter(tmp_path: Path) -> None:
    blocks = nn.Sequential(*[nn.ModuleDict({"q_proj": nn.Linear(64, 64), "up": nn.Linear(96, 64)}) for _ in range(11)])
    model = peft.get_peft_model(blocks, peft.LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "up"]))
    model.save_pretrained(tmp_path)
    command = [f"{BUILD}/bin/tidemark", "model", str(tmp_path), "--format", "json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    lora = found["lora"]
    assert lora["parameters"] == model.get_nb_trainable_parameters()[0] == 11 * 8 * (64 + 64 + 96 + 64)
    assert lora["ranks"] == [{"rank": 8, "bytes": 4 * lora["parameters"]}]
    assert lora["target_modules"] == [{"module": "q_proj", "count": 11}, {"module": "up", "count": 11}]
    assert all(module["complete"] for module in lora["modules"])
    assert (found["adapter_config"]["rank"], found["adapter_config"]["alpha"]) == (8, 16)
