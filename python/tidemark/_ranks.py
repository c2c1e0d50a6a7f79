"""One all-reduce by which all ranks of a job learn the same numbers; no rank coordinates."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from tidemark._errors import TidemarkError
from tidemark._torch import require_torch, torch_if_loaded

_POLL_SECONDS = 20e-6


class Caller(NamedTuple):
    """Whose agreement it is: words of its errors."""

    #: Such as ``StepGuard``.
    name: str
    #: What is numbered: ``step``.
    noun: str
    #: What each rank has to do for the others to get an answer.
    duty: str
    #: Why numbers of ranks may differ.
    mistake: str


class Pending(Protocol):
    """An agreement under way."""

    def result(self, timeout: float | None = None) -> Sequence[int]:
        """The maximum over all ranks of each value. Valid until the next ``start()``.

        Raises TidemarkError if a rank does not answer in time (seconds; by default those of the group), or has another number.
        """
        ...


class Alone:
    """A program without other ranks: the maximum is its own value."""

    rank = 0
    world_size = 1

    def start(self, values: Sequence[int], number: int) -> Pending:
        return _Known(values)


class _Known:
    def __init__(self, values: Sequence[int]) -> None:
        self._values = values

    def result(self, timeout: float | None = None) -> Sequence[int]:
        return self._values


class Ranks:
    """All-reduces of a few integers (maximum) in a process group, each of which all ranks take part in.

    With a backend for CPU tensors (gloo, also ``"cpu:gloo,cuda:nccl"``) the device is not involved. With NCCL alone the
    integers go over the device, in a stream of their own: the collective does not wait for kernels that the program has queued
    in its streams, but NCCL runs the collectives of a group one after the other, so it waits for gradients being reduced.
    The host waits for its result: whatever the program would queue meanwhile is late by this time.
    """

    def __init__(self, group: Any, device: Any, timeout: float, count: int, caller: Caller) -> None:
        self._torch: Any = require_torch(caller.name)
        self._distributed = self._torch.distributed
        self._group = group
        self._timeout = timeout
        self._caller = caller
        self._count = count
        self.rank = int(self._distributed.get_rank(group))
        self.world_size = int(self._distributed.get_world_size(group))
        self._device: Any = None if has_cpu_backend(self._torch, group) else device
        self._values = self._torch.zeros(count + 2, dtype=self._torch.int64)
        if self._device is not None:
            self._values = self._values.pin_memory()
            self._on_device = self._torch.zeros(count + 2, dtype=self._torch.int64, device=self._device)
            self._stream = self._torch.cuda.Stream(self._device)
            self._event = self._torch.cuda.Event()
            self._torch.cuda.synchronize(self._device)  # once, before the stream uses the tensor
        # Single elements of a tensor take microseconds each.
        self._numbers = (ctypes.c_int64 * (count + 2)).from_address(self._values.data_ptr())

    def start(self, values: Sequence[int], number: int) -> Pending:
        """Begin. One at a time: ``result()`` has to be called before the next one. All ranks have to have the same number."""
        numbers, tensor = self._numbers, self._values
        for place, value in enumerate(values):
            numbers[place] = value
        numbers[self._count] = number
        numbers[self._count + 1] = -number
        largest = self._distributed.ReduceOp.MAX
        try:
            if self._device is None:
                work = self._distributed.all_reduce(tensor, op=largest, group=self._group, async_op=True)
            else:
                with self._torch.cuda.stream(self._stream):
                    self._on_device.copy_(tensor, non_blocking=True)
                    work = self._distributed.all_reduce(self._on_device, op=largest, group=self._group, async_op=True)
                    work.wait()  # the stream waits, not the host
                    tensor.copy_(self._on_device, non_blocking=True)
                    self._event.record(self._stream)
        except RuntimeError as error:
            raise TidemarkError(f"{self._caller.name}: rank {self.rank} cannot reach the other ranks: {error}") from error
        return _Reduced(self, work, number)

    def _finish(self, work: Any, number: int, timeout: float | None) -> Sequence[int]:
        seconds = self._timeout if timeout is None else timeout
        name, noun, duty, mistake = self._caller
        try:
            self._wait(work, seconds)
        except RuntimeError as error:
            raise TidemarkError(
                f"{name}: rank {self.rank} at {noun} {number} got no answer from all of {self.world_size} ranks in "
                f"{seconds:g} s: {duty}, in the same order as the other collectives of the group, and as often ({error})"
            ) from error
        latest, earliest = self._numbers[self._count], -self._numbers[self._count + 1]
        if latest != earliest:
            raise TidemarkError(
                f"{name}: ranks are at different {noun}s, {earliest} to {latest} (rank {self.rank}: {number}): {mistake}"
            )
        return self._numbers[: self._count]

    def _wait(self, work: Any, seconds: float) -> None:
        if self._device is None:
            work.wait(timedelta(seconds=seconds))
            return
        until = time.monotonic() + seconds
        while not self._event.query():
            if time.monotonic() > until:
                raise RuntimeError("timed out")
            time.sleep(_POLL_SECONDS)


class _Reduced:
    def __init__(self, ranks: Ranks, work: Any, number: int) -> None:
        self._ranks = ranks
        self._work = work
        self._number = number

    def result(self, timeout: float | None = None) -> Sequence[int]:
        return self._ranks._finish(self._work, self._number, timeout)


def has_cpu_backend(torch: Any, group: Any) -> bool:
    """Whether the group reduces tensors of the CPU."""
    distributed = torch.distributed
    config = getattr(distributed, "get_backend_config", None)
    described = str(config(group)) if config is not None else str(distributed.get_backend(group))
    if ":" not in described:  # before PyTorch 2.0, and backends by one name
        return described in ("gloo", "mpi", "ucc")
    return any(part.split(":")[0] == "cpu" for part in described.split(","))


def ranks_of(group: Any, device: Any, timeout: float, count: int, caller: Caller) -> Alone | Ranks:
    """For agreements of ``count`` values. The default group if ``group`` is None and there is one; alone with one rank."""
    distributed: Any = getattr(torch_if_loaded(), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        if group is not None:
            raise ValueError(f"{caller.name}: process_group without torch.distributed.init_process_group()")
        return Alone()
    if distributed.get_world_size(group) == 1:
        return Alone()
    return Ranks(group, device, timeout, count, caller)


def collectives_issued() -> int | None:
    """How many collectives this process has begun in all its process groups; ``None`` if PyTorch does not count them."""
    groups: Any = getattr(getattr(torch_if_loaded(), "distributed", None), "distributed_c10d", None)
    world = getattr(groups, "_world", None)
    found = list(getattr(world, "pg_map", ()))
    try:
        return sum(int(group._get_sequence_number_for_group()) for group in found) if found else None
    except (AttributeError, RuntimeError):  # a backend without such numbers
        return None
