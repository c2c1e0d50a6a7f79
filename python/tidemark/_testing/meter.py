"""The peak memory of a piece of a program, above its memory at the beginning."""

from __future__ import annotations

from typing import Any

from tidemark._resident import forget_resident_peak, peak_resident_bytes, resident_bytes
from tidemark._torch import torch_if_loaded

#: The key of the process's resident memory among the figures; the others are CUDA devices (``"cuda:0"``).
RSS = "rss"


class Meter:
    """``start()``, then ``stop()``: bytes by device. Peaks of CUDA devices are those of PyTorch's allocator, exact; they are
    reset by ``start()``, so a program that resets them itself in between has a lower one.

    Resident memory covers the whole process, in pages, and does not show reuse: it gives only the order of magnitude. It is
    left out if the kernel does not allow resetting its peak.
    """

    def start(self) -> None:
        self._allocated: dict[int, int] = {}
        torch = torch_if_loaded()
        if torch is not None and torch.cuda.is_initialized():
            clear_workspaces(torch)
            for device in range(torch.cuda.device_count()):
                torch.cuda.reset_peak_memory_stats(device)
                self._allocated[device] = torch.cuda.memory_allocated(device)
        self._resident = resident_bytes() if forget_resident_peak() else None

    def stop(self) -> dict[str, int]:
        found: dict[str, int] = {}
        torch = torch_if_loaded()
        if torch is not None and torch.cuda.is_initialized():
            for device in range(torch.cuda.device_count()):
                peak = torch.cuda.max_memory_allocated(device)  # without a start: CUDA began in between, at 0
                found[f"cuda:{device}"] = max(peak - self._allocated.get(device, 0), 0)
        peak_resident = peak_resident_bytes() if self._resident is not None else None
        if peak_resident is not None and self._resident is not None:
            found[RSS] = max(peak_resident - self._resident, 0)
        return found


def clear_workspaces(torch: Any) -> None:
    """Frees the workspaces that cuBLAS keeps between calls: otherwise the test they belong to would depend on the order of
    tests.
    """
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)  # PyTorch 1.11
    if clear is not None:
        clear()
