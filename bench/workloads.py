"""The measured programs."""

import os
import sys

import torch
from torch import nn


def dense(device):
    """12 small layers, AdamW, batch 16, one thread: an allocator event every 2 µs or less."""
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12))).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 64, device=device)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return model, optimizer, step


def wide(device):
    """Two layers of 64 MiB, AdamW, one thread: few tensors, nearly all of them large."""
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Linear(4096, 4096, bias=False) for _ in range(2))).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 4096, device=device)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return model, optimizer, step


def example(device):
    """One step of examples/lora_finetune.py at its default size."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))
    import lora_finetune as lora

    width, layers, heads, length, batch = lora.SIZES["small"]
    model = lora.Transformer(len(lora.ALPHABET), width, layers, heads, length).to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.003)
    data = lora.batches(length, batch, device, seed=0)

    def step():
        tokens = next(data)
        logits = model(tokens[:, :-1])
        loss = lora.F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return model, optimizer, step


def huggingface_llama(device):
    """A 12-layer Llama of Hugging Face, small enough that launching kernels takes the time. All of it is trained."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=12,
        num_attention_heads=8,
        num_key_value_heads=8,
        vocab_size=32000,
        use_cache=False,
    )
    return train_language(LlamaForCausalLM(config).to(device=device, dtype=torch.bfloat16), device)


def huggingface_lora(device):
    """LoRA (r=16) on the same model."""
    from peft import LoraConfig, get_peft_model

    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model, _, _ = huggingface_llama(device)
    return train_language(get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=targets)), device)


def train_language(model, device):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    tokens = torch.randint(0, 32000, (2, 128), device=device)

    def step():
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return model, optimizer, step


def resnet50(device):
    import torchvision

    model = torchvision.models.resnet50().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    pictures = torch.randn(32, 3, 224, 224, device=device)
    labels = torch.randint(0, 1000, (32,), device=device)

    def step():
        nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return model, optimizer, step


# Each makes (model, optimizer, a function that trains a step).
WORKLOADS = {
    "dense": dense,
    "wide": wide,
    "example": example,
    "hf-lora": huggingface_lora,
    "hf-llama": huggingface_llama,
    "resnet50": resnet50,
}
