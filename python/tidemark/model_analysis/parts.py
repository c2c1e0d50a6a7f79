"""The parts of a tensor: the plain tensors of a quantized, sharded, sparse or wrapped one.

This module does not import torch or bitsandbytes: an existing tensor brings its library, and its kind shows in the attributes
that the libraries document.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tidemark._torch import byte_length


class Parts(NamedTuple):
    """A tensor taken apart."""

    #: Shape of the whole tensor, on all ranks, before packing.
    shape: tuple[int, ...]
    #: The plain tensors that hold this process's share of it.
    holders: list[Any]
    #: Scales and zero points that quantization keeps beside the numbers.
    quantization_state: list[Any]
    #: ``"4-bit nf4"``, ``"torch qint8"``, …; ``None`` for unquantized numbers.
    quantized: str | None
    #: ``"DTensor Shard(dim=0) on 4"``, ``"ZeRO-3"``, …; ``None`` for a tensor that is whole here.
    sharded: str | None


def take_apart(tensor: Any) -> Parts:
    """The tensor's parts. Passes on exceptions of its attributes: an uninitialized lazy parameter has no shape."""
    if getattr(tensor, "ds_numel", None) is not None:  # DeepSpeed's ZeRO-3 leaves an empty tensor between uses
        local = getattr(tensor, "ds_tensor", None)
        return Parts(tuple(tensor.ds_shape), [] if local is None else [local], [], None, "ZeRO-3")
    shape = tuple(int(size) for size in tensor.shape)
    if hasattr(tensor, "placements") and hasattr(tensor, "_local_tensor"):  # torch.distributed.tensor.DTensor
        ranks = "x".join(str(size) for size in tensor.device_mesh.shape)
        sharded = f"DTensor {', '.join(str(placement) for placement in tensor.placements)} on {ranks}"
        return take_apart(tensor._local_tensor)._replace(shape=shape, sharded=sharded)
    state = getattr(tensor, "quant_state", None)
    if state is not None:  # bitsandbytes' Params4bit: two numbers a byte
        label = f"4-bit {getattr(state, 'quant_type', None) or ''}".strip()
        logical = getattr(state, "shape", None)
        return Parts(shape if logical is None else tuple(logical), [tensor], _tensors_of(state), label, None)
    if getattr(tensor, "SCB", None) is not None:  # bitsandbytes' Int8Params: a scale for each row
        return Parts(shape, [tensor], [tensor.SCB], "8-bit", None)
    if tensor.is_quantized:
        return Parts(shape, [tensor], [], f"torch {short_dtype(tensor)}", None)
    holders = _plain_tensors(tensor)
    packed = sum(byte_length(part) for part in holders) < math.prod(shape) * tensor.element_size()
    is_wrapper = is_strided(tensor) and holders[0] is not tensor
    return Parts(shape, holders, [], type(tensor).__name__ if packed and is_wrapper else None, None)


def short_dtype(tensor: Any) -> str:
    """``"float32"``."""
    return str(tensor.dtype).rpartition(".")[2]


def is_strided(tensor: Any) -> bool:
    return str(tensor.layout) == "torch.strided"


def _plain_tensors(tensor: Any) -> list[Any]:
    """Indices and values of a sparse tensor, the inner tensors of a wrapper subclass (torchao's, for one), else itself."""
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return [tensor._indices(), tensor._values()]
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if layout in ("torch.sparse_csc", "torch.sparse_bsc"):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return [tensor]
    names, _ = flatten()
    return [plain for name in names for plain in _plain_tensors(getattr(tensor, name))]


def _tensors_of(state: Any) -> list[Any]:
    """The tensors of a bitsandbytes ``QuantState``; with double quantization it has a nested state for its scales."""
    tensors = [getattr(state, name, None) for name in ("absmax", "code", "offset")]
    nested = getattr(state, "state2", None)
    return [tensor for tensor in tensors if hasattr(tensor, "element_size")] + ([] if nested is None else _tensors_of(nested))
