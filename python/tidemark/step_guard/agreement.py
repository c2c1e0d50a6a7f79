"""One all-reduce by which all ranks of a job take the same decision; no rank coordinates."""

from __future__ import annotations

import ctypes
import time
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from tidemark._errors import TidemarkError
from tidemark._torch import require_torch, torch_if_loaded

# Actions by how strong they are: the strongest one of any rank is taken by all.
RUN, SPLIT_IN_DOUBT, SPLIT, SKIP, STOP = range(5)
# A vote is one number whose maximum is the decision: action, parts, rank.
_BITS = 20
_MASK = (1 << _BITS) - 1
MAX_PARTS = _MASK
_POLL_SECONDS = 20e-6


class Vote(NamedTuple):
    """What one rank wants, or what all have agreed on."""

    action: int
    parts: int
    #: This rank; in an agreement the rank that decided.
    rank: int
    #: Into how many parts the batch can be split; in an agreement the fewest of any rank.
    samples: int
    #: Which step of the guard it is, from 0.
    step: int
    #: In an agreement: the highest rank that could not predict; ``None`` if all could.
    failed_rank: int | None


class Pending(Protocol):
    """An agreement under way."""

    def result(self) -> Vote:
        """Waits for all ranks. Raises TidemarkError if one does not answer in time, or is at another step."""
        ...


class Alone:
    """The agreement of a program without other ranks: its own vote."""

    rank = 0
    world_size = 1

    def start(self, vote: Vote) -> Pending:
        return _Known(vote)


class _Known:
    def __init__(self, vote: Vote) -> None:
        self._vote = vote

    def result(self) -> Vote:
        return self._vote


class Agreement:
    """All-reduces of five integers (maximum) in a process group, each of which one vote of every rank takes part in.

    With a backend for CPU tensors (gloo, also ``"cpu:gloo,cuda:nccl"``) the device is not involved. With NCCL alone the
    integers go over the device, in a stream of their own: the collective does not wait for kernels that the program has queued
    in its streams, but NCCL runs the collectives of a group one after the other, so it waits for gradients being reduced.
    The host waits for its result: whatever the program would queue meanwhile is late by this time.
    """

    def __init__(self, group: Any, device: Any, timeout: float) -> None:
        self._torch: Any = require_torch("StepGuard")
        self._distributed = self._torch.distributed
        self._group = group
        self._timeout = timeout
        self.rank = int(self._distributed.get_rank(group))
        self.world_size = int(self._distributed.get_world_size(group))
        if self.world_size > MAX_PARTS:
            raise ValueError(f"StepGuard: at most {MAX_PARTS} ranks")
        self._device: Any = None if has_cpu_backend(self._torch, group) else device
        self._values = self._torch.zeros(5, dtype=self._torch.int64)
        if self._device is not None:
            self._values = self._values.pin_memory()
            self._on_device = self._torch.zeros(5, dtype=self._torch.int64, device=self._device)
            self._stream = self._torch.cuda.Stream(self._device)
            self._event = self._torch.cuda.Event()
            self._torch.cuda.synchronize(self._device)  # once, before the stream uses the tensor
        # Single elements of a tensor take microseconds each.
        self._numbers = (ctypes.c_int64 * 5).from_address(self._values.data_ptr())

    def start(self, vote: Vote) -> Pending:
        """Begin. One at a time: ``result()`` has to be called before the next one."""
        numbers = self._values
        strongest = vote.action << 2 * _BITS | vote.parts << _BITS | vote.rank
        failed = 0 if vote.failed_rank is None else vote.failed_rank + 1
        for place, value in enumerate((strongest, -vote.samples, vote.step, -vote.step, failed)):
            self._numbers[place] = value
        largest = self._distributed.ReduceOp.MAX
        try:
            if self._device is None:
                work = self._distributed.all_reduce(numbers, op=largest, group=self._group, async_op=True)
            else:
                with self._torch.cuda.stream(self._stream):
                    self._on_device.copy_(numbers, non_blocking=True)
                    work = self._distributed.all_reduce(self._on_device, op=largest, group=self._group, async_op=True)
                    work.wait()  # the stream waits, not the host
                    numbers.copy_(self._on_device, non_blocking=True)
                    self._event.record(self._stream)
        except RuntimeError as error:
            raise TidemarkError(f"StepGuard: rank {self.rank} cannot reach the other ranks: {error}") from error
        return _Reduced(self, work, vote.step)

    def _wait(self, work: Any) -> None:
        if self._device is None:
            work.wait(timedelta(seconds=self._timeout))
            return
        until = time.monotonic() + self._timeout
        while not self._event.query():
            if time.monotonic() > until:
                raise RuntimeError("timed out")
            time.sleep(_POLL_SECONDS)


class _Reduced:
    def __init__(self, agreement: Agreement, work: Any, step: int) -> None:
        self._agreement = agreement
        self._work = work
        self._step = step

    def result(self) -> Vote:
        agreement = self._agreement
        try:
            agreement._wait(self._work)
        except RuntimeError as error:
            raise TidemarkError(
                f"StepGuard: rank {agreement.rank} at step {self._step} got no answer from all of {agreement.world_size} ranks "
                f"in {agreement._timeout:g} s: each rank has to call parts() for each batch, in the same order as the other "
                f"collectives of the group, and as often ({error})"
            ) from error
        strongest, fewest, latest, earliest, failed = agreement._numbers
        if latest != -earliest:
            raise TidemarkError(
                f"StepGuard: ranks are at different steps, {-earliest} to {latest} (rank {agreement.rank}: {self._step}): one "
                "of them called parts() or prepare() more often than another"
            )
        return Vote(
            strongest >> 2 * _BITS,
            strongest >> _BITS & _MASK,
            strongest & _MASK,
            -fewest,
            self._step,
            failed - 1 if failed else None,
        )


def has_cpu_backend(torch: Any, group: Any) -> bool:
    """Whether the group reduces tensors of the CPU."""
    distributed = torch.distributed
    config = getattr(distributed, "get_backend_config", None)
    described = str(config(group)) if config is not None else str(distributed.get_backend(group))
    if ":" not in described:  # before PyTorch 2.0, and backends by one name
        return described in ("gloo", "mpi", "ucc")
    return any(part.split(":")[0] == "cpu" for part in described.split(","))


def agreement_of(group: Any, device: Any, timeout: float) -> Alone | Agreement:
    """For the default group if ``group`` is None and the program has one; alone with one rank."""
    distributed: Any = getattr(torch_if_loaded(), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        if group is not None:
            raise ValueError("StepGuard: process_group without torch.distributed.init_process_group()")
        return Alone()
    if distributed.get_world_size(group) == 1:
        return Alone()
    return Agreement(group, device, timeout)
