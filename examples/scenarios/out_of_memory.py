#!/usr/bin/env python3
"""Trains a small language model on sentences of many lengths, and runs out of memory when a batch has a long one.

    tidemark plan --gpu RTX-4090 --steps 0 -o oom.tide -- python examples/scenarios/out_of_memory.py
    tidemark explain oom.tide
"""

import argparse
import random
from collections import OrderedDict

import torch
from torch import nn

VOCABULARY = 32_000
WIDTH = 512


def batches(max_tokens):
    """Endless batches of 64 lengths; of `max_tokens` tokens at most, padding included, where that is given."""
    lengths = random.Random(53)
    while True:
        batch = [min(2048, int(lengths.lognormvariate(4.6, 0.6))) for _ in range(64)]
        while max_tokens and len(batch) * max(batch) > max_tokens:
            batch.remove(max(batch))
        yield batch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--max-tokens", type=int, default=0, help="of a batch, with padding (default: no limit)")
    args = parser.parse_args()

    with torch.device("cuda"):
        embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True)
        parts = {"embedding": embedding, "encoder": nn.TransformerEncoder(layer, 6), "head": nn.Linear(WIDTH, VOCABULARY)}
        model = nn.Sequential(OrderedDict(parts))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step, batch in zip(range(args.steps), batches(args.max_tokens)):
        tokens = torch.randint(VOCABULARY, (len(batch), max(batch)), device="cuda")
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: {tokens.shape[0]} x {tokens.shape[1]} tokens", flush=True)


if __name__ == "__main__":
    main()
