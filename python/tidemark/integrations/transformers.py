"""Hugging Face transformers: ``Trainer(..., callbacks=[TidemarkCallback()])``."""

from __future__ import annotations

import gc
from typing import Any

from transformers import TrainerCallback

from tidemark import _recorder
from tidemark.integrations._span import Span
from tidemark.integrations.scalars import memory_scalars


class TidemarkCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Marks steps, epochs, evaluations and checkpoints as steps and marks of the recording; adds memory to each of the
    Trainer's logs, so that TensorBoard, Weights & Biases and other ``report_to`` targets get it, and ``state.log_history``.

    ``reset_peaks``: see ``tidemark.integrations.scalars.memory_scalars``.
    """

    def __init__(self, reset_peaks: bool = False) -> None:
        self._reset_peaks = reset_peaks
        self._step = Span()
        self._evaluation = Span("evaluation")
        self._is_first = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._go_first()
        _recorder.mark("training")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        _recorder.mark(f"epoch {int(state.epoch or 0)}")

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._evaluation.end()
        self._step.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step.end()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self._evaluation.is_open:
            self._evaluation.begin()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._evaluation.end()

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any, **kwargs: Any) -> None:
        self._evaluation.end()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        _recorder.mark("checkpoint")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step.end()
        _recorder.mark("training ended")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self._go_first()
        if logs is not None:
            scalars = memory_scalars(self._reset_peaks)
            logs.update(scalars)  # for later callbacks, which write them
            if state.log_history:
                state.log_history[-1].update(scalars)

    def _go_first(self) -> None:
        """Before the callbacks that write logs, which the Trainer puts before the program's own. Callbacks do not get to
        know the Trainer, so its list is found as what refers to this one. Items after this one keep their places, so an
        iteration over the list goes on as it would."""
        if self._is_first:
            return
        self._is_first = True
        for holder in gc.get_referrers(self):
            if type(holder) is list and holder and all(isinstance(each, TrainerCallback) for each in holder):
                holder.remove(self)
                holder.insert(0, self)
