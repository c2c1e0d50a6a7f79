"""As tests/integration/phantom/faults.py, of programs that need transformers and peft: for scripts/gpu_check.py, on a real GPU.

    python scripts/gpu_faults.py       each case with and without its fault; the last line is JSON
"""

import json
import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/integration/phantom"))
from forked import run_alone

STEPS, BATCH, TOKENS = 3, 4, 1024


def llama(**config):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16}
    with torch.device("cuda"):
        return LlamaForCausalLM(LlamaConfig(vocab_size=2048, **sizes, **config)).to(torch.bfloat16)


def train(model):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], fused=True)
    for _ in range(STEPS):
        ids = torch.randint(0, 2048, (BATCH, TOKENS), device="cuda")
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def key_value_cache(fixed):
    model = llama(use_cache=not fixed)
    model.requires_grad_(True)
    train(model)


def adapter_input_casts(fixed):
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
    model = get_peft_model(llama(use_cache=False), config, autocast_adapter_dtype=not fixed)
    train(model)


CASES = {"key_value_cache": key_value_cache, "adapter_input_casts": adapter_input_casts}


def run(case, fixed):
    CASES[case](fixed)
    return {"case": case, "fixed": fixed, "pid": os.getpid(), "peak": torch.cuda.max_memory_allocated()}


if __name__ == "__main__":
    print(json.dumps([run_alone(run, case, fixed) for case in CASES for fixed in (False, True)]), flush=True)
    os._exit(0)
