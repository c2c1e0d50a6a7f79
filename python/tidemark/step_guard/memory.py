"""What a device has free for a step, and what a step took of it."""

from __future__ import annotations

from typing import Protocol

from tidemark._errors import TidemarkError
from tidemark._sizes import MIB
from tidemark._torch import require_torch
from tidemark.events.allocator_stats import Counters
from tidemark.events.counters import DeviceCounters

# If a need is below this share of what the allocator has cached, the driver need not be asked for its free memory.
_CACHED_SHARE = 0.5
# Share of the room that is lost to blocks which the cache has from batches of other sizes and cannot return.
_CACHE_LOSS = 0.25
# The same after emptying the cache, before it was measured.
_EMPTIED_LOSS = 0.15
# A measured loss replaces that of a step whose peak was at most this multiple.
_SIMILAR = 1.25
# Two partly used segments of the allocator, whose rest a larger request cannot use.
_SEGMENTS = 2 * 20 * MIB


class DeviceMemory(Protocol):
    """Counters of one device for ``StepGuard(memory=...)``, in bytes; only ``empty()`` may wait for the device's work."""

    def allocated(self) -> int:
        """Memory of tensors now."""
        ...

    def peak(self) -> int:
        """The largest ``allocated()`` since the last ``reset_peak()``. Called at the end of each part."""
        ...

    def reset_peak(self) -> None:
        """Begin another peak, at ``allocated()``."""
        ...

    def room(self, needed: float, emptied: bool) -> int:
        """What tensors may take in addition, now, or after ``empty()``.

        May be too low if it is at least ``needed``: exactness costs time.
        """
        ...

    def empty(self) -> None:
        """Return cached memory to the device, so that a large batch does not have to fit into what smaller ones left."""
        ...


class CudaMemory:
    """PyTorch's counters of a CUDA device. They belong to the host's allocator: reading them waits for nothing.

    Batches of many sizes leave a cache whose blocks do not fit the next one: a part of it stays reserved when memory runs out.
    How much is lost after emptying the cache is measured: reserved memory beside allocated memory, at the peak of such steps.
    """

    def __init__(self, device: int) -> None:
        self._cuda = require_torch("StepGuard").cuda
        self._device = device
        self._counters = DeviceCounters(device)
        self._is_emptied = False
        self._loss = (0, _EMPTIED_LOSS)  # peak, and reserved / allocated - 1

    def allocated(self) -> int:
        return self._read().allocated

    def peak(self) -> int:
        counters = self._read()
        if self._is_emptied:
            self._is_emptied = False
            if counters.max_allocated * _SIMILAR >= self._loss[0]:
                self._loss = (counters.max_allocated, counters.max_reserved / max(1, counters.max_allocated) - 1)
        return counters.max_allocated

    def reset_peak(self) -> None:
        self._cuda.reset_peak_memory_stats(self._device)

    def room(self, needed: float, emptied: bool) -> int:
        counters = self._read()
        cached = counters.reserved - counters.allocated
        if not emptied and needed <= _CACHED_SHARE * cached:
            return cached
        limit = self._limit(counters.reserved) - _SEGMENTS
        if emptied:
            return int(limit / (1 + self._loss[1])) - counters.allocated
        return int((limit - counters.allocated) * (1 - _CACHE_LOSS))

    def empty(self) -> None:
        with self._cuda.device(self._device):
            self._cuda.empty_cache()
        self._is_emptied = True

    def _limit(self, reserved: int) -> float:
        """``memory_limit()`` without PyTorch's dictionary of all counters, which takes 0.1 ms."""
        free, total = self._cuda.mem_get_info(self._device)
        share = getattr(self._cuda, "get_per_process_memory_fraction", None)
        limit = free + reserved
        return float(limit if share is None else min(limit, share(self._device) * total))

    def _read(self) -> Counters:
        counters = self._counters.read()
        if counters is None:
            raise TidemarkError("StepGuard: the allocator of this program has no counters: give memory=")
        return counters
