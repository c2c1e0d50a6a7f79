"""Out-of-memory errors: recognizing them, and releasing the memory that they keep."""

from __future__ import annotations

import gc
import sys
import traceback
from types import FrameType
from typing import Any

from tidemark._torch import torch_if_loaded

# Messages of CUDA and its libraries for which PyTorch has no exception type. The last is cuDNN's: PyTorch tries each of its
# engines, and drops the error of a workspace that does not fit.
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
    except Exception:  # an error in the program's own class
        return ""


def forget(error: BaseException) -> None:
    """Release the variables in the frames of an error and its causes: tensors of the failed step.

    Errors caught by code that still runs are kept: for example, an error that the program was handling when the step began.
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
        traceback.clear_frames(trace)  # running frames are left alone
        left += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]  # members of a group


def free_caches(device: int | None = None) -> None:
    """Collect garbage, and free the cached memory of PyTorch's allocator."""
    gc.collect()
    torch: Any = torch_if_loaded()
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        if device is None:
            torch.cuda.empty_cache()
        else:
            with torch.cuda.device(device):
                torch.cuda.empty_cache()
