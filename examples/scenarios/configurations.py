#!/usr/bin/env python3
"""One training step of a linear layer with each of some widths, every one in a process of its own."""

import tidemark
import torch


def step(width):
    model = torch.nn.Linear(width, width, device="cuda")
    model(torch.ones(64, width, device="cuda")).sum().backward()


for name, result in tidemark.compare_configs(step, {"small": {"width": 4096}, "large": {"width": 100_000}}).items():
    print(name, "out of memory" if result.out_of_memory else f"{result.memory_mb:.1f} MB")
