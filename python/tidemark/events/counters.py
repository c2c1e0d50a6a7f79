"""Memory in use now, read in about a microsecond: the numbers of each event."""

from __future__ import annotations

from typing import Any

from tidemark._torch import torch_if_installed
from tidemark.events.allocator_stats import Counters, Reader, counters_from_allocator, counters_from_dictionary

_NOTHING = Counters(0, 0, 0, 0)


class DeviceCounters:
    """Reads the counters of one CUDA device, or of the current one.

    ``cuda`` is whether there is one; without it ``read()`` is ``None``: PyTorch does not count the CPU's memory.
    """

    def __init__(self, device: object | None = None) -> None:
        found = torch_if_installed()
        torch: Any = found
        self.torch: Any = torch
        self.cuda: bool = found is not None and bool(torch.cuda.is_available())
        self._device: int | None = None
        self._reader: Reader = lambda device: _NOTHING
        self._verified = False
        if not self.cuda:
            return
        self._reader = counters_from_dictionary(torch)
        self._current_device = torch._C._cuda_getDevice
        if device is not None:
            chosen = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
            if chosen.type != "cuda":
                raise ValueError(f"device={device!r}: events have the memory of CUDA devices; leave it out in CPU mode")
            self._device = chosen.index

    def read(self) -> Counters | None:
        """The device's counters; None without CUDA. Before CUDA is initialized, which this does not do, all are 0."""
        if not self.cuda:
            return None
        if self._verified:
            return self._reader(self._current_device() if self._device is None else self._device)
        return self._read_and_verify()

    def _read_and_verify(self) -> Counters | None:
        if not self.torch.cuda.is_initialized():
            return _NOTHING
        device = self._current_device() if self._device is None else self._device
        try:
            counters = self._reader(device)
        except RuntimeError:  # an allocator of the program's own without counters
            self.cuda = False
            return None
        # Zeros would equal zeros anywhere in memory: the fast method is verified when there is something to compare.
        if counters.allocated and counters.reserved:
            quick = counters_from_allocator() if self._every_allocator_started() else None
            if quick is not None and quick(device) == self._reader(device):
                self._reader = quick
            self._verified = True
        return counters

    def _every_allocator_started(self) -> bool:
        """PyTorch starts the allocators of all devices together; calling one that has not started would end the process."""
        try:
            for device in range(self.torch.cuda.device_count()):
                self.torch._C._cuda_memoryStats(device)
        except RuntimeError:
            return False
        return True
