"""Batches in transfer to a CUDA device, on a separate stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from tidemark import _engine
from tidemark._torch import byte_length
from tidemark.loading.batches import map_tensors

_CHUNK_BYTES = 4 << 20


class DeviceBatch:
    """A batch whose copies and conversions have started; ``ready`` is the event after them."""

    __slots__ = ("batch", "copied_bytes", "ready", "tensors")

    def __init__(self) -> None:
        self.batch: Any = None
        self.tensors: list[Any] = []  #: on the device
        self.ready: Any = None
        self.copied_bytes = 0


class DeviceCopies:
    """Copies batches to one device. Used by one thread at a time, except ``hand_over``, which any thread may call.

    Raises ``TidemarkError`` if the pinned memory or a stream cannot be created.
    """

    def __init__(self, torch: Any, device: Any, dtypes: Mapping[Any, Any], pinned_bytes: int, threads: int) -> None:
        self._torch = torch
        self._dtypes = dtypes
        index = torch.cuda.current_device() if device.index is None else device.index
        self.device = torch.device("cuda", index)
        torch.cuda.init()
        chunk = min(_CHUNK_BYTES, max(4096, pinned_bytes // 2))
        self._copies = _engine.host_to_device(index, chunk, max(2, pinned_bytes // chunk), threads)
        self.pinned_bytes = _engine.pinned_bytes(self._copies)
        self._stream = torch.cuda.ExternalStream(_engine.copy_stream(self._copies), device=self.device)
        # Pinned source tensors that are being copied, and the event at the end of the copy.
        self._in_flight: deque[tuple[Any, list[Any]]] = deque()

    def begin(self, batch: Any) -> DeviceBatch:
        """Start copying the tensors of a batch. Those in pageable memory may be changed when this returns."""
        torch = self._torch
        begun = DeviceBatch()
        arrays: list[tuple[int, int, int, bool]] = []
        sources: list[Any] = []

        def to_device(tensor: Any) -> Any:
            if tensor.device.type != "cpu" or not _is_plain(torch, tensor):
                return tensor.to(self.device, non_blocking=True)
            source = _dense(torch, tensor.detach())
            target = torch.empty_like(source, device=self.device, memory_format=torch.preserve_format)
            pinned = source.is_pinned()
            arrays.append((source.data_ptr(), target.data_ptr(), byte_length(source), pinned))
            sources.append(source)
            return target

        def converted(tensor: Any) -> Any:
            dtype = self._dtypes.get(tensor.dtype)
            result = tensor if dtype is None else tensor.to(dtype)
            begun.tensors.append(result)
            return result

        with torch.cuda.device(self.device), torch.cuda.stream(self._stream), torch.no_grad():
            moved = map_tensors(batch, to_device, torch.Tensor)
            _engine.copy_to_device(self._copies, arrays)
            begun.batch = map_tensors(moved, converted, torch.Tensor)
            begun.ready = torch.cuda.Event()
            begun.ready.record(self._stream)
        begun.copied_bytes = sum(array[2] for array in arrays)
        while self._in_flight and self._in_flight[0][0].query():
            self._in_flight.popleft()
        kept = [source for source, array in zip(sources, arrays) if array[3]]
        if kept:
            self._in_flight.append((begun.ready, kept))
        return begun

    def hand_over(self, begun: DeviceBatch, handed: HandedOver) -> Any:
        """The batch for the caller's current stream, which waits for the copies; its memory lives as long as that stream needs
        it.
        """
        current = self._torch.cuda.current_stream(self.device)
        handed.note(self._torch, current)
        current.wait_event(begun.ready)
        for tensor in begun.tensors:
            if tensor.is_cuda:
                tensor.record_stream(current)
        return begun.batch


class HandedOver:
    """Progress of the device with the batches of an iteration.

    A loop that never waits for the device is many steps ahead of it, and the memory of a batch is free only when the device has
    finished with it: batches are not started faster than the device consumes them.
    """

    def __init__(self, ahead: int) -> None:
        self._before = ahead + 1  #: batches started without a wait
        self._events: deque[Any] = deque()

    def note(self, torch: Any, stream: Any) -> None:
        """A batch is handed over: the stream's work until now is for the batches before."""
        event = torch.cuda.Event(blocking=True)
        event.record(stream)
        self._events.append(event)

    def wait(self) -> None:
        """Called before starting the next batch: waits until the device has reached the one ``ahead + 1`` before it."""
        if self._before > 0:
            self._before -= 1
        elif self._events:
            self._events.popleft().synchronize()


def _is_plain(torch: Any, tensor: Any) -> bool:
    """Whether a tensor is one array of bytes: not sparse, quantized, nested, conjugated, or of a subclass."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout == torch.strided
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


def _dense(torch: Any, tensor: Any) -> Any:
    """The tensor, or a contiguous copy if its elements are not contiguous."""
    if tensor.is_contiguous():
        return tensor
    for dimensions, layout in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if tensor.dim() == dimensions and tensor.is_contiguous(memory_format=layout):
            return tensor
    return tensor.contiguous()
