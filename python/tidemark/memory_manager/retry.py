"""Steps that run out of memory, repeated in smaller parts with the same gradients."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, overload

from tidemark._logging import package_logger
from tidemark._torch import require_torch
from tidemark.loading.batches import map_tensors
from tidemark.memory_manager.out_of_memory import forget, free_caches, is_out_of_memory

Step = Callable[[Any, float], Any]


@dataclass(frozen=True)
class MicroBatches:
    """How a batch was run."""

    #: Return values of the step for each micro-batch, in order.
    values: list[Any]
    #: Samples of a micro-batch; the last one may have fewer.
    size: int
    #: Number of out-of-memory errors.
    retries: int


class _Retrying:
    def __init__(self, step: Step, model: Any, samples: int | None) -> None:
        if inspect.isgeneratorfunction(step) or inspect.iscoroutinefunction(step) or inspect.isasyncgenfunction(step):
            raise TypeError("retry_on_oom: a step that yields or awaits does not run when it is called")
        self._step = step
        self._model = model
        self._size = samples
        functools.update_wrapper(self, step, updated=())  # a callable object may have attributes with the same names

    def __call__(self, batch: Any) -> MicroBatches:
        parameters = _parameters(self._model)
        if any(parameter.grad is not None for parameter in parameters):
            raise ValueError("retry_on_oom: there are gradients already: call optimizer.zero_grad(set_to_none=True) before it")
        total = _samples(batch)
        size = min(total, self._size or total)
        retries = 0
        while True:
            values = self._run(batch, total, size)
            if values is not None:
                # Later batches begin with the size that fit.
                self._size = size if retries or self._size else None
                return MicroBatches(values, size, retries)
            for parameter in parameters:
                parameter.grad = None
            free_caches()
            retries += 1
            size = (size + 1) // 2
            package_logger().warning("retry_on_oom: out of memory; again with micro-batches of %d of %d samples", size, total)

    def _run(self, batch: Any, total: int, size: int) -> list[Any] | None:
        """The values of the step; ``None`` if memory ran out."""
        values = []
        try:
            for begin in range(0, total, size):
                part = batch if size == total else _slice(batch, begin, min(begin + size, total))
                values.append(self._step(part, min(size, total - begin) / total))
        except Exception as error:
            if size == 1 or not is_out_of_memory(error):
                raise
            forget(error)
            return None
        return values


def _parameters(model: Any) -> list[Any]:
    return list(model.parameters() if hasattr(model, "parameters") else model)


def _samples(batch: Any) -> int:
    torch = require_torch("retry_on_oom")
    sizes: set[int] = set()

    def note(tensor: Any) -> Any:
        sizes.add(tensor.shape[0] if tensor.dim() else -1)
        return tensor

    map_tensors(batch, note, torch.Tensor)
    if len(sizes) != 1 or min(sizes) < 1:
        raise ValueError("retry_on_oom: the batch's tensors must have the same first dimension, that of the samples")
    return sizes.pop()


def _slice(batch: Any, begin: int, end: int) -> Any:
    return map_tensors(batch, lambda tensor: tensor[begin:end], require_torch("retry_on_oom").Tensor)


@overload
def retry_on_oom(step: Step, batch: Any, *, model: Any | Iterable[Any], micro_batch: int | None = None) -> MicroBatches: ...
@overload
def retry_on_oom(
    *, model: Any | Iterable[Any], micro_batch: int | None = None
) -> Callable[[Step], Callable[[Any], MicroBatches]]: ...


def retry_on_oom(
    step: Step | None = None, batch: Any = None, *, model: Any | Iterable[Any], micro_batch: int | None = None
) -> Any:
    """Run ``step(batch, 1.0)``; if memory runs out, run it again on parts of half the size, and so on down to one sample.

    ``step(micro_batch, weight)`` computes the mean loss of its samples and calls ``(loss * weight).backward()``; the
    optimizer's step comes after ``retry_on_oom``. Each weight is the part's share of the samples, and gradients are ``None``
    before every attempt: the accumulated gradients equal those of the whole batch, for any part sizes, if losses are means over
    samples. Layers that use other samples (BatchNorm) or random numbers (dropout) differ in parts, as with gradient
    accumulation.

    As a decorator, ``@retry_on_oom(model=model)`` makes a function of the batch, which begins with the last size that fit.

    Args:
        step: The step to run.
        batch: Tensors, in lists, tuples or dicts, with the samples in their first dimension.
        model: The module, or the parameters, whose gradients the step computes.
        micro_batch: Begin with parts of this many samples.

    Raises:
        TypeError: for a step that is a generator or a coroutine.
        ValueError: if there are gradients already, or the batch has no dimension of samples.
    """
    if micro_batch is not None and micro_batch < 1:
        raise ValueError(f"micro_batch {micro_batch!r}: 1 or more")
    if step is None:
        kept = model if hasattr(model, "parameters") else list(model)
        return lambda function: _Retrying(function, kept, micro_batch)
    return _Retrying(step, model, micro_batch)(batch)
