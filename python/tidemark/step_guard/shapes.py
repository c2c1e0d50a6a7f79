"""The shape of a batch: how many samples it has and how long they are; and its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tidemark._torch import require_torch
from tidemark.loading.batches import map_tensors


class BatchShape(NamedTuple):
    """What a memory law needs to know of a batch."""

    #: Samples: the first dimension of the tensors.
    samples: int
    #: Length of each sample, with padding: tokens of a sequence, or elements of an image.
    length: int

    @property
    def tokens(self) -> int:
        """Samples times length."""
        return self.samples * self.length

    @property
    def squares(self) -> int:
        """Samples times the square of the length, as the scores of attention."""
        return self.samples * self.length * self.length


def shape_of(batch: Any) -> BatchShape:
    """The shape of nested tensors, samples first.

    The length is the second dimension of integer tensors that have two (token ids), the largest one; without any, the most
    elements that a tensor has for each sample. Takes a few microseconds and reads no values.

    Raises:
        ValueError: if there is no tensor, or the first dimensions differ.
    """
    torch = require_torch("StepGuard")
    samples = 0
    tokens = 0
    elements = 1
    for tensor in _tensors(batch, torch.Tensor):
        shape = tensor.shape
        if not shape or shape[0] < 1 or (samples and shape[0] != samples):
            raise ValueError(
                "StepGuard: the batch's tensors must have the same first dimension, that of the samples; or use shape="
            )
        samples = shape[0]
        if len(shape) == 2 and not tensor.is_floating_point() and not tensor.is_complex():
            tokens = max(tokens, shape[1])
        elements = max(elements, tensor.numel() // samples)
    if not samples:
        raise ValueError("StepGuard: the batch has no tensors: give its shape by shape=")
    return BatchShape(samples, tokens or elements)


def _tensors(batch: Any, tensor_type: type) -> Iterator[Any]:
    if isinstance(batch, tensor_type):
        yield batch
    elif isinstance(batch, (list, tuple)):
        for item in batch:
            yield from _tensors(item, tensor_type)
    elif isinstance(batch, Mapping):
        for item in batch.values():
            yield from _tensors(item, tensor_type)


def slice_samples(batch: Any, begin: int, end: int) -> Any:
    """The samples from ``begin`` to ``end`` (exclusive) of a batch of nested tensors, without copying them."""
    return map_tensors(batch, lambda tensor: tensor[begin:end], require_torch("StepGuard").Tensor)


def part_bounds(samples: int, parts: int) -> list[tuple[int, int]]:
    """Beginning and end of each part, in order; the first ones have one sample more if the parts are not equal."""
    size, more = divmod(samples, parts)
    bounds = []
    begin = 0
    for index in range(parts):
        end = begin + size + (index < more)
        bounds.append((begin, end))
        begin = end
    return bounds
