#!/usr/bin/env python3
"""Trains a small language model as one writes it first; with --better, as `tidemark patterns` advises.

    tidemark run -o first.tide -- python examples/scenarios/model_development.py
    tidemark patterns first.tide
"""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, LENGTH, BATCH = 4_000, 128, 64, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self, better):
        super().__init__()
        self.better = better
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(8))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.better else block(x)
        return x

    def loss(self, tokens):
        x, labels = self(tokens).flatten(0, 1), tokens.flatten()
        if not self.better:
            return nn.functional.cross_entropy(self.head(x), labels)
        # Logits of one part of the tokens at a time, computed again in the backward pass.
        parts = [checkpoint(self.part_of_loss, *part, use_reentrant=False) for part in zip(x.chunk(8), labels.chunk(8))]
        return sum(parts) / len(labels)

    def part_of_loss(self, x, labels):
        return nn.functional.cross_entropy(self.head(x), labels, reduction="sum")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--better", action="store_true")
    args = parser.parse_args()

    model = Model(args.better)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model.loss(torch.randint(VOCABULARY, (BATCH, LENGTH))).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=args.better)


if __name__ == "__main__":
    main()
