"""Runs three training steps with a batch size; the program that ``auto_batch_size(plan=…)`` plans."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

ROWS = 1 << 14  # of one sample


def step_of(layers: int) -> Callable[[int], None]:
    """A training step, a little over 1 GiB per sample."""
    import torch

    sizes: list[Any] = [torch.nn.Linear(1024, 1024, device="cuda") for _ in range(layers)]
    model = torch.nn.Sequential(*[module for layer in sizes for module in (layer, torch.nn.GELU())])
    optimizer = torch.optim.AdamW(model.parameters())

    def step(batch_size: int) -> None:
        model(torch.randn(batch_size * ROWS, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--layers", type=int, default=8)
    options = parser.parse_args()
    run = step_of(options.layers)
    for _ in range(3):
        run(options.batch_size)
