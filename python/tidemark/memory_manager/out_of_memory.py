"""Errors of memory that has run out: to know them, and to be rid of what they keep."""

from __future__ import annotations

import gc
import sys
import traceback
from types import FrameType
from typing import Any

from tidemark._torch import torch_if_loaded

# Of CUDA and its libraries where PyTorch has no type for it. The last is cuDNN's: PyTorch tries each of its engines, and drops
# the error of a workspace that there is no memory for.
_WORDS = (
    "out of memory",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "can't allocate memory",
    "unable to find an engine to execute this computation",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory of a device or of the host has run out."""
    if isinstance(error, MemoryError):
        return True
    torch = torch_if_loaded()
    kind = getattr(torch, "OutOfMemoryError", None) or getattr(getattr(torch, "cuda", None), "OutOfMemoryError", None)
    if kind is not None and isinstance(error, kind):
        return True
    return isinstance(error, RuntimeError) and any(word in _message(error) for word in _WORDS)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # of the program's own class
        return ""


def forget(error: BaseException) -> None:
    """Let go of the variables in the frames that an error, and those it came from, went through: tensors of the failed step.

    What code that still runs has caught is its own: an error that the program was handling when the step began.
    """
    running: set[FrameType] = set()
    frame = sys._getframe()
    while frame is not None:
        running.add(frame)
        frame = frame.f_back  # type: ignore[assignment]
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        trace = one.__traceback__
        if one is not error and trace is not None and trace.tb_frame in running:
            continue
        traceback.clear_frames(trace)  # frames that still run are left alone
        left += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]  # those of a group


def free_caches(device: int | None = None) -> None:
    """Collect garbage, and give back what PyTorch's allocator keeps for later."""
    gc.collect()
    torch: Any = torch_if_loaded()
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        if device is None:
            torch.cuda.empty_cache()
        else:
            with torch.cuda.device(device):
                torch.cuda.empty_cache()
