"""Keeps a training run below a threshold of device memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark._sizes import MIB
from tidemark._torch import require_torch
from tidemark.memory_manager import checkpointing, model_steps
from tidemark.memory_manager.batch_size import BatchSize, auto_batch_size
from tidemark.memory_manager.cuda_counters import PeakMeter, device_number
from tidemark.memory_manager.out_of_memory import forget, free_caches, is_out_of_memory


@dataclass(frozen=True)
class Optimization:
    """The actions of ``optimize_memory()``, and their reasons."""

    #: Its return value.
    batch_size: int | None
    #: Actions and findings, in sentences.
    notes: list[str]
    #: Names of the modules with gradient checkpointing turned on; ``["*"]`` if the model did it itself.
    checkpointed: list[str]
    #: Peak of a step with the batch size of the input, in MiB, measured before and after; ``None`` if unknown.
    peak_before_mb: float | None
    peak_after_mb: float | None


class MemoryManager:
    """Watches PyTorch's memory of one device, and reduces the memory that a model needs.

    ```python
    manager = tidemark.MemoryManager(threshold_percent=90)
    batch_size = manager.optimize_memory(model, (64, 3, 224, 224)) or 64
    ```

    Not thread-safe. Sizes are MB (MiB), as in the older tool.
    """

    def __init__(
        self, threshold_mb: float | None = None, *, threshold_percent: float | None = None, device: Any | None = None
    ) -> None:
        """Make a manager.

        Args:
            threshold_mb: allocations above it are too much; 1000 if no threshold is given.
            threshold_percent: the same, of the device's memory.
            device: such as ``"cuda:1"``; the current one by default.
        """
        if threshold_mb is not None and threshold_percent is not None:
            raise ValueError("threshold_mb and threshold_percent: one of both")
        if threshold_percent is not None and not 0 < threshold_percent <= 100:
            raise ValueError(f"threshold_percent {threshold_percent!r}: above 0, up to 100")
        if threshold_mb is not None and not threshold_mb > 0:
            raise ValueError(f"threshold_mb {threshold_mb!r}: above 0")
        self._threshold_mb = 1000.0 if threshold_mb is None and threshold_percent is None else threshold_mb
        self._threshold_percent = threshold_percent
        self._device = device_number(device)
        self._line: tuple[float, float] | None = None
        #: Result of the last ``optimize_memory()``; ``None`` before it.
        self.last_optimization: Optimization | None = None

    @property
    def threshold_mb(self) -> float | None:
        """The threshold in MiB; ``None`` for a share of a device that does not exist."""
        if self._threshold_percent is None:
            return self._threshold_mb
        if self._device is None:
            return None
        total = require_torch("MemoryManager").cuda.get_device_properties(self._device).total_memory
        return float(total) * self._threshold_percent / 100 / MIB

    @property
    def slope_mb(self) -> float | None:
        """Measured MiB of a step's peak per sample; ``None`` without a measurement."""
        return None if self._line is None else self._line[0] / MIB

    @property
    def intercept_mb(self) -> float | None:
        """Measured MiB of a step's peak that do not depend on the batch; ``None`` without a measurement."""
        return None if self._line is None else self._line[1] / MIB

    def check_memory(self) -> tuple[float, float]:
        """Memory of tensors on the GPU, and memory held by PyTorch's allocator, in MiB: ``(allocated_mb, cached_mb)``.

        Both are 0 without a GPU, as in PyTorch's counters.
        """
        if self._device is None:
            return 0.0, 0.0
        cuda = require_torch("MemoryManager").cuda
        return cuda.memory_allocated(self._device) / MIB, cuda.memory_reserved(self._device) / MIB

    def calculate_optimal_batch_size(self, current_memory: float, target_memory: float) -> int | None:
        """The largest batch size with a peak of at most ``target_memory`` MiB, from the measured slope and intercept.

        ``current_memory`` is a parameter of the older tool, which used the ratio of both; it is ignored, because memory does
        not grow in proportion to the batch. ``None`` without a measurement (by ``optimize_memory()`` or ``auto_batch_size()``),
        if the peak does not grow with the batch, or if not even one sample fits.
        """
        if self._line is None or self._line[0] <= 0:
            return None
        size = math.floor((target_memory * MIB - self._line[1]) / self._line[0])
        return size if size >= 1 else None

    def auto_batch_size(self, fn: Callable[[int], object], **options: Any) -> BatchSize:
        """``tidemark.auto_batch_size()`` on this device; the manager uses the slope and intercept it finds."""
        found = auto_batch_size(fn, **{"device": "cpu" if self._device is None else self._device, **options})
        if found.slope_bytes is not None and found.intercept_bytes is not None:
            self._line = found.slope_bytes, found.intercept_bytes
        return found

    def optimize_memory(self, model: Any, input_size: Sequence[int], *, dtype: Any | None = None) -> int | None:
        """Bring a training step of the model below the threshold.

        Frees caches, then runs forward and backward passes with random input of half and all of ``input_size``'s samples (fewer
        if these do not fit), in training mode, without changing gradients, buffers and random state, to measure the peak's
        slope and intercept. If a step with ``input_size`` would exceed the threshold, gradient checkpointing is turned on: by
        the model itself if it has ``gradient_checkpointing_enable()``, else for the blocks that save most per second of
        recomputation, as many as are needed. ``last_optimization`` describes the actions.

        Existing optimizer state and gradients are in the measurement; later ones are not.

        Args:
            model: A module on the manager's device, whose forward takes one tensor.
            input_size: Shape of a batch, samples first.
            dtype: Of the input; that of the first parameter by default.

        Returns:
            A batch size that stays below the threshold, or ``None`` if nothing has to change, or nothing is known.
        """
        if len(input_size) == 0 or input_size[0] < 1:
            raise ValueError(f"input_size {tuple(input_size)!r}: samples first, 1 or more")
        notes: list[str] = []
        done = self._optimize(model, input_size, dtype, notes)
        self.last_optimization = done
        return done.batch_size

    def _optimize(self, model: Any, input_size: Sequence[int], dtype: Any | None, notes: list[str]) -> Optimization:
        free_caches(self._device)
        notes.append("Caches were emptied.")
        threshold = self.threshold_mb
        parameter = next(iter(model.parameters()), None)
        if self._device is None or threshold is None:
            notes.append("There is no CUDA device: peaks are not known.")
            return Optimization(None, notes, [], None, None)
        if parameter is None or parameter.device.type != "cuda":
            notes.append("The model has no parameters on a CUDA device: nothing was measured.")
            return Optimization(None, notes, [], None, None)
        make = model_steps.input_maker(input_size, parameter.device, dtype or parameter.dtype)
        before = self._measure(model, make, input_size[0], notes)
        if before is None or before <= threshold:
            return Optimization(None, notes, [], before, before)
        names: list[str] = []
        after: float | None = before
        # Blocks that run again need their memory temporarily: the savings may not be enough.
        while after is not None and after > threshold and "*" not in names:
            more = self._checkpoint(model, make, (after - threshold) * MIB / input_size[0], notes)
            if not more:
                break
            names += more
            after = self._measure(model, make, input_size[0], notes)
        if after is not None and after <= threshold:
            return Optimization(None, notes, names, before, after)
        proposed = None if after is None else self.calculate_optimal_batch_size(after, threshold)
        return Optimization(proposed, notes, names, before, after)

    def _measure(self, model: Any, make: model_steps.InputOf, samples: int, notes: list[str]) -> float | None:
        """MiB of the peak of a step with this many samples, from the measured line; ``None`` if it cannot be measured."""
        assert self._device is not None
        # With few samples the peak is at the complete gradients, with many at the activations: another slope.
        larger = max(2, samples)
        while True:
            try:
                with model_steps.unchanged(model):
                    self._peak(model, make(1))  # the first pass makes workspaces
                    half, whole = (self._peak(model, make(size)) for size in (larger // 2, larger))
                break
            except Exception as error:
                forget(error)
                free_caches(self._device)
                if is_out_of_memory(error) and larger > 2:
                    larger = max(2, larger // 2)
                    continue
                why = "not even two samples fit" if is_out_of_memory(error) else str(error)
                notes.append(f"A step could not be measured: {why}.")
                return None
        slope = (whole - half) / (larger - larger // 2)
        self._line = slope, whole - slope * larger
        if larger < samples:
            notes.append(
                f"A step with {samples} samples does not fit: its peak follows from {larger // 2} and {larger} samples."
            )
        return (self._line[1] + slope * samples) / MIB

    def _peak(self, model: Any, batch: Any) -> int:
        assert self._device is not None
        free_caches(self._device)
        meter = PeakMeter(self._device)
        model_steps.forward_and_backward(model, batch)
        return meter.peak()

    def _checkpoint(self, model: Any, make: model_steps.InputOf, bytes_a_sample: float, notes: list[str]) -> list[str]:
        """Names of the newly checkpointed modules."""
        if hasattr(model, "gradient_checkpointing_enable"):
            if getattr(model, "is_gradient_checkpointing", False):
                notes.append("The model's gradient checkpointing was on already.")
                return []
            model.gradient_checkpointing_enable()
            notes.append("The model's own gradient checkpointing was turned on.")
            return ["*"]
        blocks = [block for block in checkpointing.blocks_of(model) if checkpointing.can_change(block.module)]
        if not blocks:
            notes.append("The model has no repeated blocks (ModuleList, Sequential) to checkpoint that are not so already.")
            return []
        with model_steps.unchanged(model):
            model_steps.forward(model, make(1))  # the first pass makes workspaces, and is slower
            with checkpointing.BlockMeter(model, blocks):
                model_steps.forward(model, make(1))
        chosen = checkpointing.cheapest_first(blocks, bytes_a_sample)
        if not chosen:
            notes.append("The repeated blocks keep nothing for the backward pass that checkpointing would save.")
            return []
        for block in chosen:
            checkpointing.checkpoint_block(block.module)
        saved = sum(block.saved_bytes for block in chosen)
        again = sum(block.seconds for block in chosen)
        notes.append(
            f"Gradient checkpointing was turned on for {len(chosen)} of {len(blocks)} blocks: for each sample they saved "
            f"{saved / MIB:.1f} MiB, and their forward passes of one sample take {1000 * again:.2f} ms more."
        )
        return [block.name for block in chosen]
