"""A plain training loop: ``for batch in steps(loader, writer=writer): …``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tidemark import _recorder
from tidemark.integrations._span import Span
from tidemark.integrations.scalars import memory_scalars, write_scalars

_Item = TypeVar("_Item")


def steps(
    batches: Iterable[_Item],
    *,
    name: str | None = None,
    writer: Any = None,
    every: int = 10,
    first: int = 0,
    reset_peaks: bool = False,
) -> Iterator[_Item]:
    """Yields the batches, each as a step of the recording.

    ``name`` (such as ``"epoch 3"``) marks the beginning. Every ``every`` steps the memory goes to ``writer`` (see
    ``write_scalars``) with the step's number, which begins at ``first``. Loading a batch is not part of a step. Raises
    ``ValueError`` if ``every`` < 1.
    """
    if every < 1:
        raise ValueError(f"every must be at least 1, not {every}")
    return _steps(batches, name, writer, every, first, reset_peaks)


def _steps(
    batches: Iterable[_Item], name: str | None, writer: Any, every: int, first: int, reset_peaks: bool
) -> Iterator[_Item]:
    if name is not None:
        _recorder.mark(name)
    span = Span()
    try:
        for number, batch in enumerate(batches, first):
            span.begin()
            yield batch
            span.end()
            if writer is not None and (number - first + 1) % every == 0:
                write_scalars(writer, memory_scalars(reset_peaks), number)
    finally:  # the loop was left in the middle of a step
        span.end()
