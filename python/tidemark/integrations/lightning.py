"""Lightning, from ``lightning`` or ``pytorch_lightning``: ``Trainer(callbacks=[TidemarkCallback(), StepGuardCallback()])``.

``BatchSizeCallback`` finds a batch size, also over several ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidemark import _recorder
from tidemark._errors import TidemarkError
from tidemark.integrations._span import Span
from tidemark.integrations.scalars import memory_scalars
from tidemark.memory_manager import BatchSize, auto_batch_size
from tidemark.memory_manager.model_steps import unchanged
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


class BatchSizeCallback(Callback):
    """Finds the largest batch size that fits all ranks, by ``auto_batch_size()``, and sets it before the training.

    In place of Lightning's ``BatchSizeFinder`` and ``Tuner.scale_batch_size``, which refuse jobs of several ranks. As for those
    the module or the data module has the attribute ``batch_size`` (or ``batch_arg_name``), from which its
    ``train_dataloader()`` makes the loader.

    A trial sets the attribute, makes the loader, and runs ``training_step``, backward and the optimizer's step with its first
    batch, without the strategy's wrapper: no rank communicates with another one, so none waits for one that ran out of memory.
    Hooks of a training batch are not called, and nothing is logged. Afterwards parameters, buffers, optimizer state and random
    states are as before.

    For one device and DDP (without ``static_graph``), modules with automatic optimization, and one loader. FSDP, DeepSpeed and
    SyncBatchNorm communicate in each step, so that they raise TidemarkError: plan such a program (``tidemark plan``).

    Attributes:
        found: the result of ``auto_batch_size()``; ``None`` before.
    """

    def __init__(self, *, batch_arg_name: str = "batch_size", init_val: int = 2, max_val: int = 8192, **options: Any) -> None:
        """Make a callback.

        Args:
            batch_arg_name: The attribute.
            init_val: The first size; with 1 a BatchNorm has an error.
            max_val: The largest size, at most the samples of a rank.
            **options: Of ``auto_batch_size()``.
        """
        self.found: BatchSize | None = None
        self._name = batch_arg_name
        self._first = init_val
        self._largest = max_val
        self._options = options

    @property
    def optimal_batch_size(self) -> int | None:
        """As ``BatchSizeFinder`` has it."""
        return None if self.found is None else self.found.batch_size

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        source = trainer.fit_loop._data_source
        self._check(trainer, pl_module, source)
        loader = source.dataloader()
        samples = len(loader.dataset) // trainer.world_size if hasattr(loader.dataset, "__len__") else self._largest
        largest = max(1, min(self._largest, samples))
        device = trainer.strategy.root_device
        options = {"start": min(self._first, largest), "maximum": largest, "device": device, **self._options}
        before = _value_of(pl_module, trainer, self._name)

        def trial(size: int) -> None:
            _set_value(pl_module, trainer, self._name, size)
            _train_once(trainer, pl_module, next(iter(source.dataloader())))

        with _as_before(trainer, pl_module):
            try:
                self.found = auto_batch_size(trial, **options)
            finally:
                _set_value(pl_module, trainer, self._name, before)
        if self.found.batch_size is None:
            raise TidemarkError("BatchSizeCallback: not even the smallest batch fits all ranks")
        _set_value(pl_module, trainer, self._name, self.found.batch_size)

    def _check(self, trainer: Any, module: Any, source: Any) -> None:
        wrapper = trainer.strategy.model
        if wrapper is not module and (
            type(wrapper).__name__ != "DistributedDataParallel" or getattr(wrapper, "static_graph", False)
        ):
            raise TidemarkError(
                "BatchSizeCallback: only for one device and DDP without static_graph: other strategies communicate in each step"
            )
        if not module.automatic_optimization:
            raise TidemarkError("BatchSizeCallback: needs automatic optimization")
        if not source.is_module():
            raise TidemarkError(
                "BatchSizeCallback: the loader has to come from train_dataloader() of the module or the data module"
            )
        _value_of(module, trainer, self._name)


def _holders(module: Any, trainer: Any, name: str) -> list[Any]:
    """The objects that have the attribute, as Lightning's finder looks for it; hyperparameters are dicts."""
    owners = [one for one in (module, getattr(trainer, "datamodule", None)) if one is not None]
    found: list[Any] = [one for one in owners if hasattr(one, name)]
    found += [one.hparams for one in owners if name in getattr(one, "hparams", {})]
    if not found:
        raise TidemarkError(f"BatchSizeCallback: neither the module nor the data module has {name}")
    return found


def _value_of(module: Any, trainer: Any, name: str) -> Any:
    holder = _holders(module, trainer, name)[0]
    return holder[name] if isinstance(holder, dict) else getattr(holder, name)


def _set_value(module: Any, trainer: Any, name: str, value: Any) -> None:
    for holder in _holders(module, trainer, name):
        if isinstance(holder, dict):
            holder[name] = value
        else:
            setattr(holder, name, value)


def _train_once(trainer: Any, module: Any, batch: Any) -> None:
    for optimizer in trainer.optimizers:
        optimizer.zero_grad(set_to_none=True)
    batch = trainer.strategy.batch_to_device(trainer.precision_plugin.convert_input(batch), dataloader_idx=0)
    with trainer.precision_plugin.train_step_context():
        output = module.training_step(batch, 0)
    loss = output["loss"] if isinstance(output, dict) else output
    if loss is not None:
        loss.backward()
        for optimizer in trainer.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


@contextmanager
def _as_before(trainer: Any, module: Any) -> Iterator[None]:
    """Restores parameters, buffers, optimizers, random states and modes; nothing is logged meanwhile."""
    import torch

    parameters = [(parameter, parameter.detach().cpu().clone()) for parameter in module.parameters()]
    optimizers = [(optimizer, optimizer.state_dict()) for optimizer in trainer.optimizers]
    if any(state["state"] for _, state in optimizers):
        raise TidemarkError("BatchSizeCallback: the optimizers have state already; use a Trainer that has not trained")
    module.log = module.log_dict = lambda *_, **__: None
    try:
        with unchanged(module):
            yield
    finally:
        del module.log, module.log_dict
        for optimizer, state in optimizers:
            optimizer.zero_grad(set_to_none=True)
            optimizer.load_state_dict(state)
        with torch.no_grad():
            for parameter, value in parameters:
                parameter.copy_(value)
