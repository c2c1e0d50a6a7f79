"""Finds the largest batches that a loader will yield, from lengths and the order of its sampler, without loading the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Union

from tidemark._errors import TidemarkError
from tidemark._random import random_state_kept
from tidemark._torch import require_torch
from tidemark.step_guard.shapes import BatchShape, shape_of

#: Of each sample: a sequence, or a function of a sample.
Lengths = Union[Sequence[int], Callable[[Any], int]]


@dataclass(frozen=True)
class LongestBatch:
    """A batch of a loader, by its place."""

    epoch: int
    #: Its number in the epoch, from 0.
    number: int
    #: Of its samples, in the data set.
    indexes: list[Any]
    #: With all samples padded to the longest one.
    shape: BatchShape
    #: How many batches were compared.
    compared: int
    _loader: Any = field(repr=False, compare=False)

    def load(self) -> Any:
        """The batch, as the loader's collate function makes it, on the host. Random numbers that this draws are restored."""
        dataset, collate = self._loader.dataset, self._loader.collate_fn
        with random_state_kept():
            many = getattr(dataset, "__getitems__", None)  # data sets that read several samples at once
            return collate(many(self.indexes) if many is not None else [dataset[index] for index in self.indexes])


def loader_of(source: Any, options: dict[str, Any]) -> Any:
    """The DataLoader itself, or one of a data set with these options: ``batch_size``, ``sampler``, ``collate_fn``, ...

    Raises:
        TidemarkError: for data sets without indexes, and loaders that do not make batches.
    """
    torch = require_torch("StepGuard")
    if not hasattr(source, "batch_sampler"):
        source = torch.utils.data.DataLoader(source, **options)
    elif options:
        raise ValueError(f"{', '.join(options)}: only for a data set; a loader has its own")
    if isinstance(source.dataset, torch.utils.data.IterableDataset) or source.batch_sampler is None:
        raise TidemarkError(
            "StepGuard: the largest batch can be found only of batches of indexes, by a sampler or batch_sampler"
        )
    return source


def longest_batches(
    loader: Any, lengths: Lengths | None, epochs: int, seconds: float = inf
) -> tuple[LongestBatch, LongestBatch]:
    """The batch with the most tokens, and the one with the most tokens times length: often the same.

    Epochs are simulated: ``set_epoch()`` of the samplers is called, their generators and all random states are restored. The
    order is that of the loader if it is iterated next; later epochs are the same if their order depends on a seed and the epoch
    alone, or if the training draws nothing from the random state of the sampler. After ``seconds`` no further batch is
    compared: reading samples for their lengths takes its time.

    Raises:
        ValueError: if the loader yields no batch, or there are too few lengths.
    """
    if epochs < 1:
        raise ValueError(f"epochs {epochs!r}: 1 or more")
    length_of = _length_reader(loader, lengths)
    best: list[tuple[int, int, list[Any], BatchShape] | None] = [None, None]
    compared = 0
    until = time.monotonic() + seconds
    for epoch, number, indexes in _orders(loader, epochs):
        compared += 1
        shape = BatchShape(len(indexes), max(length_of(index) for index in indexes))
        for place, before in enumerate(best):
            if before is None or _size(shape, place) > _size(before[3], place):
                best[place] = (epoch, number, list(indexes), shape)
        if time.monotonic() > until:
            break
    tokens, squares = best
    if tokens is None or squares is None:
        raise ValueError("StepGuard: the loader has no batches")
    return LongestBatch(*tokens, compared, loader), LongestBatch(*squares, compared, loader)


def _size(shape: BatchShape, place: int) -> tuple[int, int]:
    return (shape.tokens, shape.squares) if place == 0 else (shape.squares, shape.tokens)


def _orders(loader: Any, epochs: int) -> Iterator[tuple[int, int, Sequence[Any]]]:
    """Epoch, number and indexes of each batch, in the order in which the loader would yield them."""
    torch = require_torch("StepGuard")
    samplers = {id(one): one for one in (loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None), loader.sampler)}
    found = [one for one in samplers.values() if one is not None]
    generators = {id(one): one for one in (loader.generator, *(getattr(one, "generator", None) for one in found))}
    by_epoch = [one for one in found if hasattr(one, "set_epoch")]
    before = [getattr(one, "epoch", None) for one in by_epoch]
    first: int = next((epoch for epoch in before if isinstance(epoch, int)), 0)
    try:
        with random_state_kept(*(one for one in generators.values() if one is not None)):
            for epoch in range(first, first + epochs):
                for one in by_epoch:
                    one.set_epoch(epoch)
                iterator = iter(loader.batch_sampler)
                # A loader draws the seed of its workers at this moment.
                torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
                for number, indexes in enumerate(iterator):
                    yield epoch, number, indexes
    finally:
        for one, earlier in zip(by_epoch, before):
            if isinstance(earlier, int):
                one.set_epoch(earlier)


def _length_reader(loader: Any, lengths: Lengths | None) -> Callable[[Any], int]:
    dataset = loader.dataset
    if lengths is None:
        lengths = _known_lengths(loader)
    if lengths is not None and not callable(lengths):
        known = lengths
        if len(known) < len(dataset):
            raise ValueError(f"lengths: {len(known)} for {len(dataset)} samples")
        return lambda index: int(known[index])
    measure: Callable[[Any], int] = lengths or (lambda sample: shape_of(loader.collate_fn([sample])).length)
    read: dict[Any, int] = {}

    def length_of(index: Any) -> int:
        if index not in read:
            with random_state_kept():
                read[index] = int(measure(dataset[index]))
        return read[index]

    return length_of


def _known_lengths(loader: Any) -> Sequence[int] | None:
    """Lengths that the data set or its sampler has: an attribute ``lengths``, or a column ``length``."""
    for holder in (loader.dataset, loader.sampler, loader.batch_sampler):
        known = getattr(holder, "lengths", None)
        if isinstance(known, Sequence) and len(known) == len(loader.dataset):
            return known
    if "length" in (getattr(loader.dataset, "column_names", None) or ()):  # of the library datasets
        return list(loader.dataset["length"])
    return None
