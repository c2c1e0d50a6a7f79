"""Allocates blocks of varying sizes on the default stream, and prints PyTorch's peaks as JSON in the last line.

Sizes are multiples of 2 MiB: recordings have the sizes of blocks, and PyTorch gives no more than a request of these.
"""

import json
import random

import torch

MIB = 1 << 20

rng = random.Random(5)
held = []
for _ in range(240):
    held.append(torch.empty(2 * rng.randrange(15, 150) * MIB, dtype=torch.uint8, device="cuda"))
    if len(held) > 6:
        held.pop(rng.randrange(6))
print(json.dumps({"max_memory_allocated": torch.cuda.max_memory_allocated(), "max_memory_reserved": torch.cuda.max_memory_reserved()}))
