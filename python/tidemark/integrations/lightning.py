"""Lightning, from ``lightning`` or ``pytorch_lightning``: ``Trainer(callbacks=[TidemarkCallback(), StepGuardCallback()])``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemark import _recorder
from tidemark._errors import TidemarkError
from tidemark.integrations._span import Span
from tidemark.integrations.scalars import memory_scalars
from tidemark.step_guard import Part, StepGuard

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:  # the older name of the distribution
        from pytorch_lightning.callbacks import Callback


class TidemarkCallback(Callback):
    """Marks steps, epochs and validations as steps, marks and ranges of the recording; logs memory to the Trainer's loggers,
    every ``log_every_n_steps``.

    ``reset_peaks``: see ``tidemark.integrations.scalars.memory_scalars``.
    """

    def __init__(self, reset_peaks: bool = False) -> None:
        self._reset_peaks = reset_peaks
        self._step = Span()
        self._validation = Span("validation")

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        _recorder.mark(f"epoch {trainer.current_epoch}")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._step.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._step.end()
        if trainer.loggers and trainer.global_step % trainer.log_every_n_steps == 0:
            scalars = memory_scalars(self._reset_peaks)
            for logger in trainer.loggers:
                logger.log_metrics(scalars, step=trainer.global_step)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._step.end()
        self._validation.begin()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._validation.end()

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        _recorder.mark("checkpoint")

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._step.end()
        self._validation.end()


class StepGuardCallback(Callback):
    """Guards the training steps of a Trainer by ``tidemark.StepGuard``, with its ``options``.

    A batch that is split runs ``training_step`` and backward for each part; a skipped one returns ``None`` in place of a loss.
    Gradients equal those of the whole batch if the loss is a mean over samples. For modules with automatic optimization and one
    optimizer; what ``training_step`` logs is logged for each part.

    Attributes:
        guard: the StepGuard; ``None`` before the training begins.
    """

    def __init__(self, **options: Any) -> None:
        self.guard: StepGuard | None = None
        self._options = options
        self._keeps_gradients = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if not pl_module.automatic_optimization or len(trainer.optimizers) != 1:
            raise TidemarkError("StepGuardCallback: needs automatic optimization and one optimizer")
        wrapper = type(trainer.strategy.model).__name__
        if trainer.world_size > 1:
            # The parts run below the forward pass of the wrapper, whose hooks DDP ignores until it ends.
            self._options.setdefault("equal_parts", wrapper != "DistributedDataParallel")
        self.guard = StepGuard(pl_module, **self._options)
        self._trainer, self._module = trainer, pl_module
        self._step, self._zero_grad = pl_module.training_step, pl_module.optimizer_zero_grad
        pl_module.training_step, pl_module.optimizer_zero_grad = self._guarded_step, self._guarded_zero_grad

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._restore()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._restore()

    def _restore(self) -> None:
        module, self._module = getattr(self, "_module", None), None
        if module is not None:
            del module.training_step, module.optimizer_zero_grad  # the class's own again
            del self._step, self._zero_grad, self._trainer

    def _guarded_step(self, batch: Any, *arguments: Any, **named: Any) -> Any:
        assert self.guard is not None
        output: Any = None
        # The last part's backward pass is Lightning's own, after this: its end is the end of the step.
        parts = self._parts = self.guard.parts(batch)
        for part in parts:
            output = self._run(part, arguments, named)
            if part.is_last:
                return output
        return None

    def _run(self, part: Part, arguments: Any, named: Any) -> Any:
        output = self._step(part.batch, *arguments, **named)
        if part.count == 1 or output is None:
            return output
        loss = (output["loss"] if isinstance(output, dict) else output) * part.weight
        if part.is_last:
            return {**output, "loss": loss} if isinstance(output, dict) else loss
        trainer = self._trainer
        accumulated = trainer.accumulate_grad_batches
        if part.index == 0 and trainer.fit_loop.epoch_loop.batch_idx % accumulated == 0:
            trainer.optimizers[0].zero_grad()
            self._keeps_gradients = True  # Lightning would set them to zero after this
        trainer.strategy.backward(loss / accumulated, trainer.optimizers[0])
        return output

    def _guarded_zero_grad(self, *arguments: Any, **named: Any) -> None:
        keeps, self._keeps_gradients = self._keeps_gradients, False
        if not keeps:
            self._zero_grad(*arguments, **named)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._finish()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._finish()

    def _finish(self) -> None:
        """The backward pass of the last part has ended."""
        for _ in self.__dict__.pop("_parts", ()):
            pass
