"""Accelerate: ``Accelerator(log_with=["tensorboard", TidemarkTracker()])``, and batch sizes that all ranks share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from accelerate.tracking import GeneralTracker

from tidemark import _recorder
from tidemark.integrations.scalars import memory_scalars, write_scalars
from tidemark.memory_manager import auto_batch_size

_Result = TypeVar("_Result")


class TidemarkTracker(GeneralTracker):  # type: ignore[misc,unused-ignore]
    """Measures the memory at each ``accelerator.log(values, step=…)``, and marks the moment in the recording.

    The scalars go to ``writer`` (see ``tidemark.integrations.scalars.write_scalars``) and into ``tracker``, the list of (step,
    scalars) that ``accelerator.get_tracker("tidemark", unwrap=True)`` returns. ``reset_peaks``: see ``memory_scalars``.
    """

    name = "tidemark"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, writer: Any = None, reset_peaks: bool = False) -> None:
        super().__init__()
        self._writer = writer
        self._reset_peaks = reset_peaks
        self._history: list[tuple[int, dict[str, float]]] = []

    @property
    def tracker(self) -> list[tuple[int, dict[str, float]]]:
        return self._history

    def log(self, values: dict[str, Any], step: int | None = None, **kwargs: Any) -> None:
        number = step if step is not None else len(self._history)
        _recorder.mark(f"log {number}")
        scalars = memory_scalars(self._reset_peaks)
        self._history.append((number, scalars))
        write_scalars(self._writer, scalars, number)

    def finish(self) -> None:
        _recorder.mark("training ended")


def find_executable_batch_size(
    trial: Callable[..., object], *, starting_batch_size: int = 128, **options: Any
) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """A decorator like ``accelerate.utils.find_executable_batch_size``, for jobs of several ranks.

    Accelerate's own one repeats the training with a smaller batch on the rank that ran out of memory, and leaves the others
    waiting in their collectives. Here ``trial(batch_size, *args, **kwargs)`` is searched first, by ``auto_batch_size()`` on all
    ranks: one training step that does not communicate (``accelerator.unwrap_model(model)`` in place of a wrapped model). Then
    the function runs once, everywhere with the size that fits everywhere, and as arguments those of the call:

    ```python
    def trial(batch_size, model, optimizer):
        accelerator.unwrap_model(model)(random_batch(batch_size)).loss.backward()
        optimizer.optimizer.step()
        optimizer.optimizer.zero_grad(set_to_none=True)

    @find_executable_batch_size(trial, starting_batch_size=128)
    def train(batch_size, model, optimizer): ...

    train(model, optimizer)
    ```

    Args:
        trial: The step.
        starting_batch_size: The largest size.
        **options: Of ``auto_batch_size()``.

    Raises:
        RuntimeError: by the decorated function, if not even the smallest size fits all ranks.
    """

    def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> _Result:
            found = auto_batch_size(lambda size: trial(size, *args, **kwargs), **{"maximum": starting_batch_size, **options})
            if found.batch_size is None:
                raise RuntimeError("No executable batch size found: not even the smallest one fits all ranks.")
            return function(found.batch_size, *args, **kwargs)

        return decorated

    return decorate
