"""Forward and backward passes that leave a model unchanged, for measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

from tidemark._random import random_state_kept
from tidemark._torch import require_torch

InputOf = Callable[[int], Any]


def input_maker(input_size: Sequence[int], device: Any, dtype: Any) -> InputOf:
    """Random input of this shape with another number of samples, which is the first dimension."""
    torch = require_torch("The memory manager")
    shape = tuple(input_size[1:])
    if dtype.is_floating_point:
        return lambda samples: torch.randn((samples, *shape), device=device, dtype=dtype)
    return lambda samples: torch.zeros((samples, *shape), device=device, dtype=dtype)


@contextmanager
def unchanged(model: Any) -> Any:
    """Restores buffers, random state and training mode of the model afterwards."""
    torch = require_torch("The memory manager")
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    modes = [(module, module.training) for module in model.modules()]
    try:
        with random_state_kept(), torch.enable_grad():
            model.train()
            yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        for module, training in modes:
            module.training = training


def forward(model: Any, batch: Any) -> Any:
    """A sum of the model's outputs, from which a backward pass can begin."""
    torch = require_torch("The memory manager")
    total = None
    left = [model(batch)]
    while left:
        value = left.pop()
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                part = value.float().mean()
                total = part if total is None else total + part
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, (list, tuple)):
            left += value
    if total is None:
        raise ValueError("the model returns nothing that has gradients")
    return total


def forward_and_backward(model: Any, batch: Any) -> None:
    """Computes the gradients and drops them: ``.grad`` of the parameters is unchanged."""
    torch = require_torch("The memory manager")
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    torch.autograd.grad(forward(model, batch), parameters, allow_unused=True)
