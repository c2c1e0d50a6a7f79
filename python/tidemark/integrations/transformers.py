"""Hugging Face transformers: ``Trainer(..., callbacks=[TidemarkCallback()])``, and ``guard_trainer(trainer)``."""

from __future__ import annotations

import gc
from typing import Any

from transformers import TrainerCallback

from tidemark import _recorder
from tidemark._errors import TidemarkError
from tidemark.integrations._span import Span
from tidemark.integrations.scalars import memory_scalars
from tidemark.step_guard import StepGuard


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


class GuardedTrainer:
    """What ``guard_trainer()`` returns.

    Attributes:
        guard: the StepGuard; ``None`` before the first step, when the Trainer has wrapped its model.
    """

    def __init__(self, trainer: Any, options: dict[str, Any]) -> None:
        self.guard: StepGuard | None = None
        self._trainer = trainer
        self._options = options
        self._weight = 1.0
        self._step = trainer.training_step
        self._loss = trainer.compute_loss
        trainer.training_step = self._guarded_step
        trainer.compute_loss = self._weighted_loss

    def _guarded_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        if self.guard is None:
            self.guard = self._make_guard(model)
        total: Any = None
        for part in self.guard.parts(inputs):
            self._weight = 1.0 if self._has_sums(num_items_in_batch) else part.weight
            try:
                loss = self._step(model, part.batch, num_items_in_batch)
            finally:
                self._weight = 1.0
            total = loss if total is None else total + loss
        if total is None:
            import torch

            return torch.zeros((), device=self._trainer.args.device)
        return total

    def _make_guard(self, model: Any) -> StepGuard:
        trainer = self._trainer
        if getattr(trainer, "is_deepspeed_enabled", False) or trainer.args.n_gpu > 1:
            raise TidemarkError("guard_trainer: DeepSpeed and DataParallel reduce gradients in each backward pass")
        if getattr(trainer.accelerator, "scaler", None) is not None and self._options.get("otherwise", "skip") == "skip":
            raise TidemarkError(
                'guard_trainer: fp16 scales each step, and a skipped one has no gradients: otherwise="stop", or bf16'
            )
        return StepGuard(model, **self._options)

    def _has_sums(self, num_items_in_batch: Any) -> bool:
        """Whether the loss is a sum over items divided by the number of items of the whole batch: parts add up as they are."""
        trainer = self._trainer
        if num_items_in_batch is None:
            return False
        if trainer.compute_loss_func is not None:
            return True
        return bool(trainer.model_accepts_loss_kwargs) and trainer.label_smoother is None

    def _weighted_loss(self, *arguments: Any, **named: Any) -> Any:
        found = self._loss(*arguments, **named)
        if self._weight == 1.0:
            return found
        return (found[0] * self._weight, *found[1:]) if isinstance(found, tuple) else found * self._weight


def guard_trainer(trainer: Any, **options: Any) -> GuardedTrainer:
    """Guard the training steps of a Trainer by ``tidemark.StepGuard``, with its ``options``; call it before ``train()``.

    Callbacks of a Trainer get no batches, so this replaces ``training_step`` and ``compute_loss`` of the object by functions
    that call them for each part of a batch. Gradients equal those of the whole batch if the model takes ``num_items_in_batch``
    (as language models do) or its loss is a mean over samples. The loss of a skipped batch is logged as 0.

    At the first step raises TidemarkError for DeepSpeed, DataParallel, and fp16 with ``otherwise="skip"``.
    """
    return GuardedTrainer(trainer, options)
