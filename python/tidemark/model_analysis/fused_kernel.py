"""Norms of 16-bit tensors on a CUDA device by Tidemark's own kernels, if they are available and faster."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tidemark._nvrtc import Kernel, compile_source, library_of, load_kernels
from tidemark.model_analysis.fused_source import NAMES, TENSORS, THREADS, source
from tidemark.model_analysis.parts import short_dtype

#: Elements of a piece: 128 KiB, 32 loads of each thread.
_PIECE = 65536
#: Pieces of a launch, 4 bytes of memory each; with more, pieces are longer.
_MOST_PIECES = 2**17
#: Bytes from which these kernels are used: fewer are read about as fast as kernels are launched, and compiling takes 0.1 s.
_WORTHWHILE = 2**26
_ALIGNMENT = 16


class _Tensors(ctypes.Structure):
    """The parameter that describes tensors, as declared in the source."""

    _fields_ = (
        ("values", ctypes.c_uint64 * TENSORS),
        ("sizes", ctypes.c_uint64 * TENSORS),
        ("first", ctypes.c_uint32 * (TENSORS + 1)),
        ("count", ctypes.c_uint32),
        ("piece", ctypes.c_uint32),
    )


#: Compiled, by device, dtype and order; ``None`` if that failed once.
_kernels: dict[tuple[int, str, float], list[Kernel] | None] = {}
_code: dict[tuple[str, str, float], bytes] = {}
_lock = threading.Lock()


def readable(tensors: Sequence[Any], indices: Sequence[int], order: float) -> list[int]:
    """The indices of tensors, not empty and of one device and dtype, that the kernels can read; empty if not worthwhile."""
    first = tensors[indices[0]]
    if first.device.type != "cuda" or short_dtype(first) not in ("bfloat16", "float16"):
        return []
    if _kernels.get((first.device.index, short_dtype(first), order), ()) is None:
        return []
    found = [i for i in indices if tensors[i].is_contiguous() and tensors[i].data_ptr() % _ALIGNMENT == 0]
    return found if sum(int(tensors[i].numel()) for i in found) * 2 >= _WORTHWHILE else []


def try_norms(torch: Any, tensors: Sequence[Any], order: float) -> Any | None:
    """``norms()``, or ``None`` if a requirement is missing: an NVRTC, one that supports the device, a driver that loads it.

    After the first failure, nothing is tried again.
    """
    device, dtype = tensors[0].device, short_dtype(tensors[0])
    key = (device.index, dtype, order)
    try:
        # Writing zeros makes the device's context current on this thread, which PyTorch's allocator alone would not.
        values = torch.zeros(len(tensors), dtype=torch.float32, device=device)
        with _lock:
            if key not in _kernels:
                _kernels[key] = compiled(torch, device, dtype, order)
            kernels = _kernels[key]
        if kernels is not None:
            norms(torch, kernels, tensors, values)
            return values
    except (OSError, AttributeError, RuntimeError, KeyError):
        _kernels[key] = None
    return None


def compiled(torch: Any, device: Any, dtype: str, order: float) -> list[Kernel]:
    """The kernels for the current device. Raises the exceptions of ``tidemark._nvrtc``."""
    library = library_of(torch)
    major, minor = torch.cuda.get_device_capability(device)
    architecture = f"sm_{major}{minor}"
    code = _code.get((architecture, dtype, order))
    if code is None:
        code = _code[architecture, dtype, order] = compile_source(library, source(dtype, order), architecture)
    return load_kernels(library, code, NAMES)


def norms(torch: Any, kernels: list[Kernel], tensors: Sequence[Any], values: Any) -> None:
    """Writes the norms of readable tensors on the current device to ``values``, in its current stream."""
    pieces, totals = kernels
    stream = torch.cuda.current_stream(values.device).cuda_stream
    for begin in range(0, len(tensors), TENSORS):
        batch = tensors[begin : begin + TENSORS]
        described = _described(batch)
        count = described.first[len(batch)]
        # Both kernels are in the stream when this is freed, so later allocations from the allocator come after them.
        numbers = torch.empty(count, dtype=torch.int32, device=values.device)
        at = ctypes.c_void_p(numbers.data_ptr())
        pieces.launch(count, THREADS, stream, described, at)
        totals.launch(len(batch), THREADS, stream, described, at, ctypes.c_void_p(values[begin:].data_ptr()))


def _described(batch: Sequence[Any]) -> _Tensors:
    sizes = [int(tensor.numel()) for tensor in batch]
    piece = _PIECE
    while sum(-(-size // piece) for size in sizes) > _MOST_PIECES:
        piece *= 2
    described = _Tensors(count=len(batch), piece=piece)
    described.values[: len(batch)] = [tensor.data_ptr() for tensor in batch]
    described.sizes[: len(batch)] = sizes
    described.first[: len(batch) + 1] = [0, *accumulate(-(-size // piece) for size in sizes)]
    return described
