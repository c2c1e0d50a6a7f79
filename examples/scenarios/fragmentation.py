#!/usr/bin/env python3
"""Answers requests of many lengths, which leaves PyTorch's cache in pieces; writes PyTorch's own snapshot when it dies.

    tidemark plan --gpu RTX-4090 --steps 0 -- python examples/scenarios/fragmentation.py
    tidemark explain fragmented.pickle
"""

import random
from collections import deque

import torch

MIB = 1 << 20


def answer(length):
    """A buffer as long as the request, for a moment; the result is kept."""
    scores = torch.empty(length, MIB, dtype=torch.uint8, device="cuda")
    return scores.amax(dim=0), scores[:32].clone()


def main():
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    lengths = random.Random(0)
    results = deque(maxlen=96)
    answered = 0
    try:
        for _ in range(400):
            best, first = answer(lengths.randint(256, 4096))
            results.append((best, first))
            answered += 1
    except torch.OutOfMemoryError as error:
        print(f"after {answered} requests: {str(error).partition('. If')[0]}")
    torch.cuda.memory._dump_snapshot("fragmented.pickle")


if __name__ == "__main__":
    main()
