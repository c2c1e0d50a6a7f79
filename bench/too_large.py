"""A transformer with 24 layers whose batch of 32 needs 69 GiB: for the changes that `tidemark plan` finds.

Prints what PyTorch counted and what the driver says is used, in bytes, as JSON.
"""

import argparse
import json

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, LAYERS, TOKENS, LENGTH = 1024, 16, 24, 32_000, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_before_attention = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm_before_mlp = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        normed = self.norm_before_attention(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.mlp(self.norm_before_mlp(x))


class Model(nn.Module):
    def __init__(self, checkpointing):
        super().__init__()
        self.checkpointing = checkpointing
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointing else layer(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--grad-checkpointing", action="store_true")
    args = parser.parse_args()
    model = Model(args.grad_checkpointing).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(10):
        tokens = torch.randint(0, TOKENS, (args.batch_size, LENGTH), device="cuda")
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    counted = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    print(json.dumps({**counted, "used": total - free}))


if __name__ == "__main__":
    main()
