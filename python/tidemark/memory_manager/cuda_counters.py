"""PyTorch's counters of one CUDA device."""

from __future__ import annotations

from typing import Any

from tidemark._torch import gpu_count, require_torch


def device_number(device: Any | None) -> int | None:
    """The CUDA device of an argument, else the current one; ``None`` for the CPU and without CUDA."""
    torch = require_torch("The memory manager")
    if device is not None:
        chosen = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if chosen.type == "cpu":
            return None
        if chosen.type != "cuda" or not gpu_count():
            raise ValueError(f"device {device!r}: the CPU, or a CUDA device that PyTorch sees")
        if chosen.index is not None:
            return int(chosen.index)
    return int(torch.cuda.current_device()) if gpu_count() else None


def memory_limit(device: int) -> int:
    """Bytes available to tensors of this process: the device's free memory and the allocator's reserved memory."""
    torch = require_torch("The memory manager")
    free, total = torch.cuda.mem_get_info(device)
    limit = free + torch.cuda.memory_reserved(device)
    share = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    return int(limit if share is None else min(limit, share(device) * total))


class PeakMeter:
    """The peak allocation since its creation. Resets PyTorch's peak counters of the device."""

    def __init__(self, device: int) -> None:
        self._torch = require_torch("The memory manager")
        self._device = device
        self._torch.cuda.synchronize(device)
        self._torch.cuda.reset_peak_memory_stats(device)
        self.before = int(self._torch.cuda.memory_allocated(device))

    def peak(self) -> int:
        """The peak in bytes."""
        self._torch.cuda.synchronize(self._device)
        return int(self._torch.cuda.max_memory_allocated(self._device))

    def kept(self) -> int:
        """Growth of allocated bytes since the beginning; may be negative."""
        return int(self._torch.cuda.memory_allocated(self._device)) - self.before
