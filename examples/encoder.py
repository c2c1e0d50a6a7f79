#!/usr/bin/env python3
"""Trains a transformer encoder on random tokens, with the batch and the length that you choose.

    tidemark plan --gpu RTX-4090 --fit batch -- python examples/encoder.py
    tidemark sweep -o sweep --gpu RTX-4090 --vary length=256,512 --vary batch=4..32 -- python examples/encoder.py
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()

    with torch.device("cuda"):
        embedding = nn.Embedding(32_000, args.width)
        layer = nn.TransformerEncoderLayer(args.width, args.width // 64, 4 * args.width, batch_first=True)
        model = nn.Sequential(embedding, nn.TransformerEncoder(layer, args.layers), nn.Linear(args.width, 32_000))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(args.steps):
        tokens = torch.randint(32_000, (args.batch, args.length), device="cuda")
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        # Not below torch.device(): AdamW would keep its count of steps on the GPU, and read it at each step.
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
