"""Runs forward and backward of a batch for its peak, and leaves the model as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from tidemark._random import random_state_kept
from tidemark._torch import require_torch
from tidemark.memory_manager.out_of_memory import forget, free_caches, is_out_of_memory
from tidemark.step_guard.longest_batch import LongestBatch
from tidemark.step_guard.memory import DeviceMemory
from tidemark.step_guard.shapes import BatchShape, part_bounds


@contextmanager
def nothing_changed(model: Any) -> Iterator[None]:
    """In training mode without gradients; afterwards gradients, buffers, random states and modes are as before, to the bit."""
    torch = require_torch("StepGuard")
    parameters = list(model.parameters())
    gradients = [parameter.grad for parameter in parameters]
    buffers = [
        (module, name, buffer, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    modes = [(module, module.training) for module in model.modules()]
    try:
        with random_state_kept():
            for parameter in parameters:
                parameter.grad = None
            model.train()
            yield
    finally:
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        with torch.no_grad():
            for module, name, buffer, value in buffers:
                buffer.copy_(value)
                module._buffers[name] = buffer  # a forward pass may have replaced it
        for module, mode in modes:
            module.training = mode


@dataclass(frozen=True)
class TriedBatch:
    """A batch that ``preflight()`` ran on this rank."""

    batch: LongestBatch
    #: As collated: may differ from that of the lengths, by padding.
    shape: BatchShape
    #: In how many parts it fits; ``None`` if not even single samples do.
    parts: int | None
    #: Peak above what was allocated before, in bytes; ``None`` if it did not fit, and on the CPU.
    needed_bytes: int | None


@dataclass(frozen=True)
class Preflight:
    """Result of ``StepGuard.preflight()``; the same on all ranks, but for ``tried``."""

    #: In how many parts the largest batch of any rank fits; ``None`` if one does not even in single samples.
    parts: int | None
    #: The rank that needs as many.
    rank: int
    #: The batches of this rank.
    tried: list[TriedBatch]


@dataclass(frozen=True)
class Trial:
    """How to run forward and backward of a batch."""

    model: Any
    #: In which nothing is communicated.
    no_sync: Callable[[], AbstractContextManager[Any]]
    memory: DeviceMemory | None
    split: Callable[[Any, int, int], Any]
    step: Callable[[Any, float], Any]

    def fewest_parts(self, batch: Any, samples: int, most: int) -> tuple[int | None, int | None, int]:
        """The parts in which the batch fits, of 1, 2, 4, ... ``most`` (``None`` if in none), and its bytes.

        Those are the peak and what is left at the end, above what was allocated before; unknown without ``memory``.
        """
        parts = 1
        while True:
            measured = self._run(batch, samples, parts)
            if measured is not None:
                return parts, *measured
            free_caches()
            if parts >= most:
                return None, None, 0
            parts = min(2 * parts, most)

    def _run(self, batch: Any, samples: int, parts: int) -> tuple[int | None, int] | None:
        """Bytes of the peak and what is left; ``None`` if memory ran out."""
        memory = self.memory
        with nothing_changed(self.model), self.no_sync():
            before = 0
            if memory is not None:
                memory.reset_peak()
                before = memory.allocated()
            try:
                for begin, end in part_bounds(samples, parts):
                    self.step(batch if parts == 1 else self.split(batch, begin, end), (end - begin) / samples)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                forget(error)
                return None
            return (None, 0) if memory is None else (memory.peak() - before, memory.allocated() - before)
