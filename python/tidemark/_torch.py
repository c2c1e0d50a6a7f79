"""Optional access to PyTorch: Tidemark does not depend on it and does not import it before it is needed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def torch_if_loaded() -> Any | None:
    """``torch`` if the program has imported it already, else ``None``; also a replacement of it in a test."""
    found = sys.modules.get("torch")
    whole = isinstance(found, ModuleType) and isinstance(getattr(found, "_C", None), ModuleType) and hasattr(found, "cuda")
    return found if whole else None


def torch_if_installed() -> Any | None:
    """``torch``, imported now if necessary; ``None`` if it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def require_torch(what: str) -> Any:
    """``torch``; if it is not installed, an ImportError that names the feature that needs it."""
    torch = torch_if_installed()
    if torch is None:
        raise ImportError(f"{what} needs PyTorch, which is not installed in this environment")
    return torch


def gpu_count() -> int:
    """CUDA devices visible to PyTorch; 0 without torch, without CUDA, or without a driver."""
    torch = torch_if_installed()
    return int(torch.cuda.device_count()) if torch is not None and torch.cuda.is_available() else 0


def storage_of(tensor: Any) -> Any | None:
    """The untyped storage of a tensor; ``None`` if it has none, such as sparse and wrapped tensors."""
    try:
        if hasattr(tensor, "untyped_storage"):
            return tensor.untyped_storage()
        typed = tensor.storage()  # until 1.13
        return typed._untyped() if hasattr(typed, "_untyped") else typed._storage
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def byte_length(tensor: Any) -> int:
    """For a plain tensor: the size of its elements, however often its strides repeat them."""
    return int(tensor.numel()) * int(tensor.element_size())
