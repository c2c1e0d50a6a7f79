#!/usr/bin/env python3
"""Fine-tunes a small transformer with LoRA adapters, in plain PyTorch (1.13 to 2.15).

    python examples/lora_finetune.py                         # CPU or GPU, whatever there is
    tidemark run -o demo.tide -- python examples/lora_finetune.py
    tidemark summary demo.tide

The base model is frozen. What is trained: a low-rank adapter beside every linear layer, and the output head. The text is
made up here: short stories with a question at the end, whose answer the model has to copy from the story. The last line
is JSON with what PyTorch itself counts, to compare with what a profiler recorded.
"""

import argparse
import gc
import json
import math
import random
import time

import torch
from torch import nn
from torch.nn import functional as F

# name: (width, layers, heads, tokens in a sequence, sequences in a batch)
SIZES = {
    "tiny": (64, 2, 2, 64, 4),
    "small": (192, 4, 4, 128, 8),
    "medium": (768, 12, 12, 512, 8),
    "large": (2048, 24, 16, 1024, 8),
}


class LoraLinear(nn.Module):
    """y = W x + (alpha / rank) B A x, with W frozen and B zero at first, so that training starts from the base model."""

    def __init__(self, inputs, outputs, rank=8, alpha=32):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False)
        self.base.weight.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b) * self.scale


class Attention(nn.Module):
    """Causal self-attention, written out: the scores are the tensors that grow with the square of the sequence."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = LoraLinear(width, 3 * width)
        self.out = LoraLinear(width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        weights = scores.masked_fill(mask, float("-inf")).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = LoraLinear(width, 4 * width)
        self.down = LoraLinear(4 * width, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary, width, layers, heads, length):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width).requires_grad_(False)
        self.position = nn.Parameter(0.1 * torch.randn(length, width), requires_grad=False)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)
        self.register_buffer("mask", torch.ones(length, length).triu(1).bool())

    def forward(self, tokens):
        x = self.token(tokens) + self.position
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


NAMES = "mia noah lena omar ada finn zoe luis".split()
COLORS = "red blue green black white".split()
THINGS = "kite drum lamp boat coat".split()


def story(rng):
    owners = rng.sample(NAMES, 2)
    things = [f"{rng.randint(2, 9)} {rng.choice(COLORS)} {rng.choice(THINGS)}s" for _ in owners]
    asked = rng.randrange(2)
    told = " ".join(f"{owner} has {thing}." for owner, thing in zip(owners, things))
    return f"{told} what has {owners[asked]}? {things[asked]}.\n"


ALPHABET = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789 .?\n"))


def batches(length, size, device, seed):
    """Endless batches of token ids: one more than `length`, for inputs and their next characters."""
    rng = random.Random(seed)
    index = {character: i for i, character in enumerate(ALPHABET)}
    while True:
        rows = []
        for _ in range(size):
            text = ""
            while len(text) <= length:
                text += story(rng)
            rows.append([index[character] for character in text[: length + 1]])
        yield torch.tensor(rows, device=device)


def storage_bytes(tensors):
    """Bytes of the tensors' storages, each storage once."""
    sizes = {}
    for tensor in tensors:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()
        sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def counted_by_pytorch(device, model):
    if device.type == "cuda":
        return {
            "device": str(next(model.parameters()).device),
            "max_memory_allocated": torch.cuda.max_memory_allocated(device),
            "max_memory_reserved": torch.cuda.max_memory_reserved(device),
        }
    # The CPU allocator keeps no totals: walk over every tensor that Python can reach. Gradients count too; most of them
    # have no Python object until somebody asks.
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    gc.collect()
    alive = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor) and o.device.type == "cpu"]
    return {"device": "cpu", "live_tensor_storage_bytes": storage_bytes(alive + gradients)}


def main():
    parser = argparse.ArgumentParser(description="Fine-tune a small transformer with LoRA adapters.")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU when there is one)")
    parser.add_argument("--size", choices=SIZES, default="small")
    args = parser.parse_args()
    device = torch.device(args.device or ("cuda" if torch.cuda.is_available() else "cpu"))

    torch.manual_seed(0)
    width, layers, heads, length, batch = SIZES[args.size]
    model = Transformer(len(ALPHABET), width, layers, heads, length).to(device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    total = sum(parameter.numel() for parameter in model.parameters())
    print(f"{args.size} on {device}: {total:,} parameters, {sum(p.numel() for p in trained):,} of them trained")

    optimizer = torch.optim.AdamW(trained, lr=0.6 / width)
    data = batches(length, batch, device, seed=0)
    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        tokens = next(data)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step == 1 or step % 10 == 0 or step == args.steps:
            print(f"step {step:4d}  loss {loss.item():.3f}", flush=True)
    seconds = time.perf_counter() - began
    print(f"{args.steps} steps in {seconds:.1f} s")
    del tokens, logits, loss
    print(json.dumps(counted_by_pytorch(device, model)))


if __name__ == "__main__":
    main()
