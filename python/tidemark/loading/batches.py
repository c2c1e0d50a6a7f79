"""The tensors of a nested batch, and the same batch with other tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidemark._torch import byte_length


def map_tensors(batch: Any, function: Callable[[Any], Any], tensor_type: type) -> Any:
    """The batch with each tensor replaced by ``function(tensor)``.

    Tensors are found in tuples (named ones too), lists and mappings, at any depth. Everything else is unchanged: text, numbers,
    objects of the user's own types.
    """
    if isinstance(batch, tensor_type):
        return function(batch)
    if isinstance(batch, tuple):
        items = [map_tensors(item, function, tensor_type) for item in batch]
        return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)
    if isinstance(batch, list):
        return [map_tensors(item, function, tensor_type) for item in batch]
    if isinstance(batch, Mapping):
        mapped = {key: map_tensors(value, function, tensor_type) for key, value in batch.items()}
        try:
            return type(batch)(mapped)  # type: ignore[call-arg]
        except TypeError:  # a mapping type with another constructor
            return mapped
    return batch


def batch_bytes(batch: Any, tensor_type: type) -> int:
    """The bytes of all tensors in a batch."""
    total = 0

    def count(tensor: Any) -> Any:
        nonlocal total
        total += byte_length(tensor)
        return tensor

    map_tensors(batch, count, tensor_type)
    return total
