"""Selects the tensors whose values can be checked, with the reasons for skipping others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark._language import say
from tidemark._torch import storage_of
from tidemark.model_analysis.modules import is_module, modules_of, tensors_by_name, tensors_of
from tidemark.model_analysis.parts import is_strided, short_dtype, take_apart

_CHECKED_DTYPES = {"torch.float32", "torch.float16", "torch.bfloat16", "torch.float64"}


@dataclass(frozen=True)
class SkippedTensor:
    """A tensor whose values were not checked."""

    name: str
    reason: str


def named_tensors(source: Any, what: str, gradients: bool) -> list[tuple[str, Any]]:
    """Parameters and buffers of a model (and their gradients, as ``NAME.grad``), or the tensors given, by name; each once."""
    found: list[tuple[str, Any]]
    if is_module(source):
        found = [(entry.name, entry.tensor) for entry in tensors_of(modules_of(source))]
    elif hasattr(source, "element_size"):
        found = [(str(getattr(source, "name", None) or "tensor"), source)]
    elif isinstance(source, Iterable) and not isinstance(source, (Mapping, str, bytes)):
        entries = list(source)
        found = [
            entry if isinstance(entry, tuple) and len(entry) == 2 else (f"[{number}]", entry)
            for number, entry in enumerate(entries)
        ]
    else:
        by_name = tensors_by_name(source)
        if by_name is None:
            raise TypeError(f"{what} takes a torch.nn.Module or tensors, not {type(source).__name__}")
        found = [(entry.name, entry.tensor) for entry in by_name]
    if gradients:
        leaves: list[tuple[str, Any]] = [(name, tensor) for name, tensor in found if getattr(tensor, "is_leaf", False)]
        found += [(f"{name}.grad", tensor.grad) for name, tensor in leaves if tensor.grad is not None]
    once: dict[int, tuple[str, Any]] = {}
    for name, tensor in found:
        if not hasattr(tensor, "element_size"):
            raise TypeError(f"{what} takes a torch.nn.Module or tensors; {name} is of type {type(tensor).__name__}")
        once.setdefault(id(tensor), (str(name), tensor))
    return list(once.values())


def checkable(tensor: Any, lang: str | None = None) -> tuple[Any | None, str]:
    """The plain tensor to check (for a DTensor: this process's part), or ``None`` and the reason."""
    is_plain = type(tensor).__name__ in ("Tensor", "Parameter") and not tensor.__dict__ and str(tensor.dtype) in _CHECKED_DTYPES
    if is_plain and is_strided(tensor) and tensor.device.type != "meta" and not _is_freed(tensor):
        return tensor.detach(), ""  # nearly all of them, before the slower checks below, which take microseconds
    try:
        parts = take_apart(tensor)
    except Exception as problem:  # a tensor subclass may raise anything
        return None, f"{type(problem).__name__}: {problem}"
    if parts.quantized is not None:
        return None, say("quantized ({label})", lang, label=parts.quantized)
    if not is_strided(tensor):
        return None, say("sparse ({layout})", lang, layout=str(tensor.layout).rpartition(".")[2])
    if len(parts.holders) != 1:
        return None, say("held in {count} tensors", lang, count=len(parts.holders))
    plain = parts.holders[0]
    if plain.device.type == "meta":
        return None, say("on the meta device: no values", lang)
    if _is_freed(plain):
        return None, say("its memory has been given back", lang)
    if str(plain.dtype) not in _CHECKED_DTYPES:
        return None, say("dtype {dtype}", lang, dtype=short_dtype(plain))
    return plain.detach(), ""


def _is_freed(tensor: Any) -> bool:
    """Whether its storage was resized to nothing, as FSDP does between uses: reading it would end the process."""
    storage = storage_of(tensor)
    return storage is not None and storage.nbytes() == 0 and tensor.numel() > 0
