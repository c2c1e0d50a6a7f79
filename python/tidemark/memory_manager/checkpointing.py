"""Gradient checkpointing of a model's blocks, where it saves the most memory per time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tidemark._torch import require_torch, storage_of


@dataclass
class BlockCost:
    """Memory that a block keeps for the backward pass."""

    name: str
    module: Any = field(repr=False)
    #: Bytes needed by the backward pass of the block that are not in its input.
    saved_bytes: int = 0
    #: Seconds of its forward pass, which checkpointing runs again.
    seconds: float = 0.0


def blocks_of(model: Any) -> list[BlockCost]:
    """The outermost members of ``ModuleList`` and ``Sequential`` that have parameters: the repeated parts of models."""
    torch = require_torch("The memory manager")
    found: list[BlockCost] = []

    def search(module: Any, prefix: str) -> None:
        repeats = isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential))
        for name, child in module.named_children():
            path = f"{prefix}.{name}" if prefix else name
            if repeats and any(True for _ in child.parameters()):
                found.append(BlockCost(path, child))
            else:
                search(child, path)

    search(model, "")
    return found


class BlockMeter:
    """Measures the blocks while the model runs a forward pass: tensors that are saved for backward, and time.

    The saved tensors of a block are seen by ``torch.autograd.graph.saved_tensors_hooks``; each storage counts once, parameters,
    buffers and the block's input do not count.
    """

    def __init__(self, model: Any, blocks: list[BlockCost]) -> None:
        self._torch = require_torch("The memory manager")
        self._blocks = blocks
        tensors = [*model.parameters(), *model.buffers()]
        self._own = {key for key in map(_storage_key, tensors) if key is not None}

    def __enter__(self) -> BlockMeter:
        for block in self._blocks:
            block.module.forward = functools.partial(self._measured, block, block.module.forward)
        return self

    def __exit__(self, *_: object) -> None:
        for block in self._blocks:
            del block.module.forward  # restores the class's

    def _measured(self, block: BlockCost, forward: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        seen = set(self._own)
        for argument in [*arguments, *named.values()]:
            key = _storage_key(argument)
            if key is not None:
                seen.add(key)

        def pack(tensor: Any) -> Any:
            key = _storage_key(tensor)
            if key is not None and key not in seen:
                seen.add(key)
                block.saved_bytes += int(storage_of(tensor).nbytes())  # type: ignore[union-attr]
            return tensor

        self._wait()
        began = time.perf_counter()
        with self._torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = forward(*arguments, **named)
        self._wait()
        block.seconds += time.perf_counter() - began
        return result

    def _wait(self) -> None:
        if self._torch.cuda.is_available() and self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()


def _storage_key(tensor: Any) -> int | None:
    storage = storage_of(tensor) if hasattr(tensor, "dim") else None
    return None if storage is None else int(storage.data_ptr())


def is_checkpointed(module: Any) -> bool:
    """Whether ``checkpoint_block()`` was applied."""
    return getattr(module.__dict__.get("forward"), "func", None) is _checkpointed


def can_change(module: Any) -> bool:
    """Whether the block's forward is the class's own, not replaced in the object."""
    return "forward" not in module.__dict__


def checkpoint_block(module: Any) -> None:
    """Run the block's forward again in backward, instead of keeping its saved tensors, in training mode."""
    module.forward = functools.partial(_checkpointed, module, module.forward)


def _checkpointed(module: Any, forward: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    torch = require_torch("The memory manager")
    if not module.training or not torch.is_grad_enabled():
        return forward(*arguments, **named)
    return import_module("torch.utils.checkpoint").checkpoint(forward, *arguments, use_reentrant=False, **named)


def cheapest_first(blocks: list[BlockCost], needed_bytes: float) -> list[BlockCost]:
    """The blocks that save most for each second of recomputation, until ``needed_bytes`` are saved or none is left."""
    ranked = sorted(
        (block for block in blocks if block.saved_bytes > 0),
        key=lambda block: block.saved_bytes / max(block.seconds, 1e-9),
        reverse=True,
    )
    chosen: list[BlockCost] = []
    for block in ranked:
        if sum(one.saved_bytes for one in chosen) >= needed_bytes:
            break
        chosen.append(block)
    return chosen
