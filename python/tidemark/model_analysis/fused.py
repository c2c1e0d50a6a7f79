"""One number for each of many tensors, with one kernel per device and dtype if possible.

PyTorch's multi-tensor norm reads each tensor once and writes one number for each 64 Ki elements, so nothing is copied. Large
16-bit tensors on CUDA devices are read by Tidemark's kernels, which do the same faster, if available.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from tidemark._torch import require_torch
from tidemark.model_analysis.fused_kernel import readable, try_norms

#: Elements that a block of the kernel reads (kChunkSize of PyTorch's multi-tensor kernels).
_CHUNK = 65536
#: Partial results of one call. PyTorch allocates, for each tensor, as many as the largest one has chunks, 4 or 8 bytes each:
#: kept below the 1 MiB from which its allocator takes a segment of 20 MiB.
_MOST_PARTIAL_RESULTS = 2**17 - 1


class StartedNorms:
    """Work started on devices, and its results."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: list[tuple[list[int], Any]] = []

    def add(self, indices: list[int], values: Any) -> None:
        self._waiting.append((indices, values))

    def results(self) -> list[float]:
        """Waits for the devices. The norms, in the order of the tensors."""
        found = [0.0] * self._count
        for indices, values in self._waiting:
            for index, value in zip(indices, values.tolist()):
                found[index] = value
        self._waiting.clear()  # and with it the results' memory on the devices
        return found


def norms(tensors: Sequence[Any], order: float) -> list[float]:
    """``start_norms()`` and its results."""
    return start_norms(tensors, order).results()


def start_norms(tensors: Sequence[Any], order: float) -> StartedNorms:
    """Norm of each tensor: of order 2, the root of the sum of squares, or of infinity, the largest magnitude.

    NaN if a tensor has one; else infinity if it has one, or the sum of squares is beyond float32; 0 if it is empty. Tensors are
    dense, real and of floating point, on any devices; each device works in its current stream. The current device is unchanged.
    """
    torch = require_torch("norms")
    started = StartedNorms(len(tensors))
    with torch.no_grad():
        for device, indices in _groups(tensors):
            with _on(torch, device):
                ours = readable(tensors, indices, order)
                values = try_norms(torch, [tensors[index] for index in ours], order) if ours else None
                if values is not None:
                    started.add(ours, values)
                    indices = sorted(set(indices) - set(ours))
                for batch in _batches(tensors, indices):
                    started.add(batch, _norms_of(torch, [tensors[index] for index in batch], order))
    return started


def _norms_of(torch: Any, tensors: list[Any], order: float) -> Any:
    """One tensor with the norms of tensors of one device and dtype. Sums of squares are float32 or wider."""
    wider = {"dtype": torch.float32} if order == 2 and tensors[0].dtype in (torch.float16, torch.bfloat16) else {}
    public: Any = getattr(torch, "foreach", None)
    if hasattr(public, "norm"):
        return torch.stack(public.norm(tensors, ord=order, **wider))
    try:
        return torch.stack(torch._foreach_norm(tensors, order, **wider))
    except TypeError:  # older versions have no dtype argument
        return torch.stack([torch.linalg.vector_norm(tensor, order, **wider) for tensor in tensors])


def _groups(tensors: Sequence[Any]) -> list[tuple[Any, list[int]]]:
    """Indices of tensors of one device and dtype, with the device; empty tensors are in none."""
    groups: dict[tuple[Any, Any], list[int]] = {}
    for index, tensor in enumerate(tensors):
        if tensor.numel() > 0:
            groups.setdefault((tensor.device, tensor.dtype), []).append(index)
    return [(device, indices) for (device, _), indices in groups.items()]


def _batches(tensors: Sequence[Any], indices: list[int]) -> Iterator[list[int]]:
    """Groups of tensors of similar size."""
    batch: list[int] = []
    for index in sorted(indices, key=lambda index: -int(tensors[index].numel())):
        chunks_of_largest = -(-int(tensors[batch[0] if batch else index].numel()) // _CHUNK)
        if batch and (len(batch) + 1) * chunks_of_largest > _MOST_PARTIAL_RESULTS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _on(torch: Any, device: Any) -> Any:
    """A context in which the device is current, if its type has a current device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
