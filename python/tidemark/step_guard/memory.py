"""What a device has free for a step, and what a step took of it."""

from __future__ import annotations

from typing import Protocol

from tidemark._errors import TidemarkError
from tidemark._sizes import MIB
from tidemark._torch import require_torch
from tidemark.events.allocator_stats import Counters
from tidemark.events.counters import DeviceCounters
from tidemark.memory_manager.cuda_counters import memory_limit

# If a need is below this share of what the allocator has cached, the driver need not be asked for its free memory.
_CACHED_SHARE = 0.5
# Two partly used segments of the allocator, whose rest a larger request cannot use.
_SEGMENTS = 2 * 20 * MIB


class DeviceMemory(Protocol):
    """Counters of one device for ``StepGuard(memory=...)``. Sizes are bytes; no call may wait for the device's work."""

    def allocated(self) -> int:
        """Memory of tensors now."""
        ...

    def peak(self) -> int:
        """The largest ``allocated()`` since the last ``reset_peak()``."""
        ...

    def reset_peak(self) -> None:
        """Begin another peak, at ``allocated()``."""
        ...

    def room(self, needed: float) -> int:
        """What tensors may take in addition. May be too low if it is at least ``needed``: exactness costs time."""
        ...


class CudaMemory:
    """PyTorch's counters of a CUDA device. They belong to the host's allocator: reading them waits for nothing."""

    def __init__(self, device: int) -> None:
        self._cuda = require_torch("StepGuard").cuda
        self._device = device
        self._counters = DeviceCounters(device)

    def allocated(self) -> int:
        return self._read().allocated

    def peak(self) -> int:
        return self._read().max_allocated

    def reset_peak(self) -> None:
        self._cuda.reset_peak_memory_stats(self._device)

    def room(self, needed: float) -> int:
        counters = self._read()
        cached = counters.reserved - counters.allocated
        if needed <= _CACHED_SHARE * cached:
            return cached
        return memory_limit(self._device) - counters.allocated - _SEGMENTS

    def _read(self) -> Counters:
        counters = self._counters.read()
        if counters is None:
            raise TidemarkError("StepGuard: the allocator of this program has no counters: give memory=")
        return counters
