"""The prefetching loader."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from tidemark.loading.read_ahead import ReadAhead, iterate


@dataclass(frozen=True)
class PrefetchReport:
    """Statistics of a ``PrefetchLoader``, for all its iterations. Seconds are those of the host's clock."""

    batches: int  #: handed out
    waited_seconds: float  #: the loop waited for a batch while the thread made one
    reading_seconds: float  #: the thread read batches, and started copying them
    held_up_seconds: float  #: the thread waited because enough batches were ready, or in use by the device
    copied_bytes: int  #: to the device
    pinned_bytes: int  #: memory that stays pinned while the loader exists
    ahead: int  #: batches that are made before they are requested

    @property
    def waits_for_data(self) -> bool | None:
        """Whether reading is slower than the loop: it waited longer than the reader did. ``None`` before two batches."""
        return None if self.batches < 2 else self.waited_seconds > self.held_up_seconds


class PrefetchLoader:
    """Batches of a loader, read ahead on a thread and copied to the device on a separate stream.

    ```python
    for images, labels in tidemark.PrefetchLoader(loader, device="cuda", dtype={torch.uint8: torch.float16}):
        loss = model(images)
    ```

    Tensors in nested tuples, lists and mappings are copied through a bounded ring of pinned memory; pinned tensors are copied
    directly. Without a GPU, or with ``device="cpu"``, batches are read ahead and not copied. Each iteration has its own thread,
    which ends with it, even if the loop is left early.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        device: Any = None,
        *,
        ahead: int = 2,
        dtype: Any = None,
        pinned_mb: float = 32,
        copy_threads: int | None = None,
    ) -> None:
        """Make a loader.

        Args:
            loader: any iterable: a ``DataLoader``, a list, a generator (once).
            device: a ``torch.device`` or its name; by default the current CUDA device, or the CPU if there is none.
            ahead: batches that are read and copied before they are requested. They take memory on the device, and so do two
                more: a loop that is further ahead of the device waits.
            dtype: target of floating-point tensors, or a mapping of dtypes; converted on the device, after the copy.
            pinned_mb: pinned memory, in MiB; larger tensors go through it piece by piece.
            copy_threads: threads that fill the pinned memory; by default one for four processors available to the process, at
                most 4.
        """
        if ahead < 1:
            raise ValueError(f"ahead={ahead}: at least 1 batch")
        if copy_threads is not None and copy_threads < 1:
            raise ValueError(f"copy_threads={copy_threads}: at least 1")
        if not pinned_mb > 0:
            raise ValueError(f"pinned_mb={pinned_mb}: more than 0")
        self.loader = loader
        self._ahead = ahead
        self._pinned_bytes = int(pinned_mb * (1 << 20))
        self._copy_threads = copy_threads or 0
        self._copies: Any = None
        self._device, self._dtypes = _target(device, dtype)
        self._iterations: weakref.WeakSet[ReadAhead] = weakref.WeakSet()
        self._ended = _Totals()
        self._copied_bytes = 0
        self._closed = False

    def __iter__(self) -> Iterator[Any]:
        if self._closed:
            raise RuntimeError("this PrefetchLoader was closed")
        if self._device is not None and self._copies is None:
            import torch

            from tidemark.loading.device_copies import DeviceCopies

            self._copies = DeviceCopies(torch, self._device, self._dtypes, self._pinned_bytes, self._copy_threads)
        batches = iter(self.loader)
        copies = self._copies
        hand_over: Callable[[Any], Any] = _unchanged
        if copies is None:
            ahead = ReadAhead(lambda: self._converted(next(batches)), self._ahead)
        else:
            from tidemark.loading.device_copies import HandedOver

            handed = HandedOver(self._ahead)
            ahead = ReadAhead(lambda: copies.begin(next(batches)), self._ahead, handed.wait)
            hand_over = partial(self._hand_over, handed=handed)

        self._iterations.add(ahead)
        iteration = self._counted(ahead, hand_over)
        weakref.finalize(iteration, ahead.stop).atexit = False  # one that never started has nothing else to end it
        return iteration

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        """Attributes of the loader: ``dataset``, ``sampler``, ``batch_size``, …"""
        if name.startswith("_") or name == "loader":
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __getstate__(self) -> dict[str, Any]:
        """For pickling: the loader, without the state of iterations."""
        return {**self.__dict__, "_copies": None, "_iterations": None, "_ended": _Totals(), "_copied_bytes": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _iterations=weakref.WeakSet())

    def report(self) -> PrefetchReport:
        """Statistics so far."""
        totals = _Totals()
        totals.add(self._ended)
        for running in list(self._iterations):
            totals.add(running)
        return PrefetchReport(
            batches=totals.items,
            waited_seconds=totals.waited_s,
            reading_seconds=totals.making_s,
            held_up_seconds=totals.held_up_s,
            copied_bytes=self._copied_bytes,
            pinned_bytes=0 if self._copies is None else self._copies.pinned_bytes,
            ahead=self._ahead,
        )

    def close(self) -> None:
        """End all iterations and free the pinned memory. May be called again; iterating afterwards is an error."""
        self._closed = True
        for running in list(self._iterations):
            running.stop()
        self._copies = None

    def __enter__(self) -> PrefetchLoader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _converted(self, batch: Any) -> Any:
        """The batch on the CPU, with dtypes converted."""
        if not self._dtypes:
            return batch
        import torch

        from tidemark.loading.batches import map_tensors

        return map_tensors(batch, lambda tensor: tensor.to(self._dtypes.get(tensor.dtype, tensor.dtype)), torch.Tensor)

    def _hand_over(self, begun: Any, handed: Any) -> Any:
        self._copied_bytes += begun.copied_bytes
        copies = self._copies
        if copies is None:
            raise RuntimeError("this PrefetchLoader was closed")
        return copies.hand_over(begun, handed)

    def _counted(self, ahead: ReadAhead, hand_over: Callable[[Any], Any]) -> Iterator[Any]:
        try:
            yield from iterate(ahead, hand_over)
        finally:
            self._iterations.discard(ahead)
            self._ended.add(ahead)


class _Totals:
    """Sums of the times of several iterations."""

    def __init__(self) -> None:
        self.items = 0
        self.waited_s = 0.0
        self.making_s = 0.0
        self.held_up_s = 0.0

    def add(self, other: Any) -> None:
        self.items += other.items
        self.waited_s += other.waited_s
        self.making_s += other.making_s
        self.held_up_s += other.held_up_s


def _unchanged(batch: Any) -> Any:
    return batch


def _target(device: Any, dtype: Any) -> tuple[Any, Mapping[Any, Any]]:
    """The CUDA device or None, and the target dtypes."""
    try:
        import torch
    except ImportError:
        if device is None and dtype is None:
            return None, {}
        raise
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(device)
    if device.type not in ("cuda", "cpu"):
        raise ValueError(f"device {device}: a CUDA device, or the CPU")
    if dtype is None:
        dtypes: Mapping[Any, Any] = {}
    elif isinstance(dtype, Mapping):
        dtypes = dtype
    else:
        dtypes = {each: dtype for each in (torch.float64, torch.float32, torch.float16, torch.bfloat16) if each != dtype}
    return (device if device.type == "cuda" else None), dtypes
