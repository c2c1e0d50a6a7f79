"""NaN, infinite, smallest and largest values of one tensor, with temporary memory of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

from tidemark._torch import require_torch

#: Elements processed at a time: the masks of one piece take some 20 MiB in float32.
_PIECE = 2**20


class ValueRange(NamedTuple):
    """For one tensor; the range covers its finite values, and is ``None`` if it has none."""

    nan: int
    inf: int
    least: float | None
    most: float | None


def value_range(tensor: Any) -> ValueRange:
    """Reads the tensor, which is dense, real and of floating point. Restores the current device and waits for the tensor's."""
    torch = require_torch("value_range")
    with torch.no_grad(), torch.cuda.device(tensor.device) if tensor.device.type == "cuda" else nullcontext():
        found = [_of_piece(torch, piece) for piece in _pieces(tensor)]
        if not found:
            return ValueRange(0, 0, None, None)
        nan, inf, least, most = (torch.stack(column) for column in zip(*found))
        nan_count, inf_count = int(nan.sum()), int(inf.sum())
        if nan_count + inf_count == tensor.numel():
            return ValueRange(nan_count, inf_count, None, None)
        return ValueRange(nan_count, inf_count, float(least.amin()), float(most.amax()))


def _of_piece(torch: Any, piece: Any) -> tuple[Any, Any, Any, Any]:
    infinity = float("inf")
    finite = torch.isfinite(piece)
    return (
        torch.isnan(piece).sum(),
        torch.isinf(piece).sum(),
        torch.where(finite, piece, infinity).amin(),
        torch.where(finite, piece, -infinity).amax(),
    )


def _pieces(tensor: Any) -> Iterator[Any]:
    """Views that make up the tensor, each of at most ``_PIECE`` elements: at most one piece is copied at a time."""
    if tensor.numel() == 0:
        return
    if tensor.numel() <= _PIECE:
        yield tensor
        return
    longest = max(range(tensor.dim()), key=lambda dim: int(tensor.shape[dim]))
    rest = int(tensor.numel()) // int(tensor.shape[longest])
    for piece in tensor.split(max(1, _PIECE // rest), dim=longest):
        yield from _pieces(piece)
