"""Lightning: ``Trainer(callbacks=[TidemarkCallback()])``, from ``lightning`` or ``pytorch_lightning``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemark import _recorder
from tidemark.integrations._span import Span
from tidemark.integrations.scalars import memory_scalars

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
