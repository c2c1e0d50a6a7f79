"""PyTorch where it is there: Tidemark does not depend on it and does not import it before it is needed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def torch_if_loaded() -> Any | None:
    """``torch`` where the program has imported it already, else ``None``; also for what stands in for it in a test."""
    found = sys.modules.get("torch")
    whole = isinstance(found, ModuleType) and isinstance(getattr(found, "_C", None), ModuleType) and hasattr(found, "cuda")
    return found if whole else None


def torch_if_installed() -> Any | None:
    """``torch``, imported now if need be; ``None`` where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def require_torch(what: str) -> Any:
    """``torch``; an ImportError that names what needs it where it is not installed."""
    torch = torch_if_installed()
    if torch is None:
        raise ImportError(f"{what} needs PyTorch, which is not installed in this environment")
    return torch


def gpu_count() -> int:
    """CUDA devices that PyTorch sees; 0 without torch, without CUDA, or without a driver."""
    torch = torch_if_installed()
    return int(torch.cuda.device_count()) if torch is not None and torch.cuda.is_available() else 0


def storage_of(tensor: Any) -> Any | None:
    """The untyped storage of a tensor; ``None`` for those that show none, such as sparse and wrapped tensors."""
    try:
        if hasattr(tensor, "untyped_storage"):
            return tensor.untyped_storage()
        typed = tensor.storage()  # until 1.13
        return typed._untyped() if hasattr(typed, "_untyped") else typed._storage
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def byte_length(tensor: Any) -> int:
    """Of a plain tensor: what its elements take, however often its strides show them."""
    return int(tensor.numel()) * int(tensor.element_size())
