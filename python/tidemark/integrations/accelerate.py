"""Accelerate: ``Accelerator(log_with=["tensorboard", TidemarkTracker()])``."""

from __future__ import annotations

from typing import Any

from accelerate.tracking import GeneralTracker

from tidemark import _recorder
from tidemark.integrations.scalars import memory_scalars, write_scalars


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
