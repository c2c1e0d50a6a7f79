"""Programs for measuring the cost of a plan: a 12-layer Llama with LoRA for three steps, or a 70-billion-parameter Llama built on the device.

    tidemark plan --gpu H200 --steps 0 -- python bench/planned_models.py lora
    tidemark plan --gpu H200 --steps 0 -- python bench/planned_models.py 70b

Needs transformers, and peft for `lora`.
"""

import resource
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def lora():
    from peft import LoraConfig, get_peft_model

    config = LlamaConfig(hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, vocab_size=32000)
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
    model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    optimizer = torch.optim.AdamW(parameter for parameter in model.parameters() if parameter.requires_grad)
    for _ in range(3):
        tokens = torch.randint(0, 32000, (8, 512), device="cuda")
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def seventy_billion():
    torch.set_default_dtype(torch.bfloat16)
    shape = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "vocab_size": 128256}
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(num_attention_heads=64, num_key_value_heads=8, **shape))
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")


{"lora": lora, "70b": seventy_billion}[sys.argv[1]]()
print(f"peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
