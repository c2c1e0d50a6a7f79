#!/usr/bin/env python3
"""Trains a small classifier, and keeps more of each validation than it needs; with --fixed it does not.

    tidemark run -o leak.tide -- python examples/scenarios/leak.py
    tidemark leaks leak.tide
"""

import argparse

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


def validate(model, history):
    x, y = torch.randn(64, 256), torch.randint(10, (64,))
    history.append(nn.functional.cross_entropy(model(x), y))  # a tensor, with the graph that made it


def validate_fixed(model, history):
    x, y = torch.randn(64, 256), torch.randint(10, (64,))
    with torch.no_grad():
        history.append(nn.functional.cross_entropy(model(x), y).item())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(args.steps):
        x, y = torch.randn(64, 256), torch.randint(10, (64,))
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        (validate_fixed if args.fixed else validate)(model, history)
    print(f"validated {len(history)} times")


if __name__ == "__main__":
    main()
