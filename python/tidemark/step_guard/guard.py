"""Decides before each step, together with all ranks, whether its batch fits: run it, split it, skip it, or stop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, TypeVar

from tidemark import _recorder
from tidemark._errors import TidemarkError
from tidemark._logging import package_logger
from tidemark._sizes import bytes_text
from tidemark._torch import require_torch
from tidemark.memory_manager.cuda_counters import device_number
from tidemark.step_guard.agreement import MAX_PARTS, RUN, SKIP, SPLIT, SPLIT_IN_DOUBT, STOP, Agreement, PendingVote, Vote
from tidemark.step_guard.flight_dump import ask_for_dump
from tidemark.step_guard.law import MemoryLaw, Prediction
from tidemark.step_guard.longest_batch import Lengths, LongestBatch, loader_of, longest_batches
from tidemark.step_guard.memory import CudaMemory, DeviceMemory
from tidemark.step_guard.shapes import BatchShape, part_bounds, shape_of, slice_samples
from tidemark.step_guard.trial_step import Preflight, Trial, TriedBatch

_Batch = TypeVar("_Batch")

_OTHERWISE = {"run": RUN, "skip": SKIP, "stop": STOP}
_NAMES = {RUN: "run", SPLIT_IN_DOUBT: "split", SPLIT: "split", SKIP: "skip", STOP: "stop"}
# Steps before batches() decides ahead: the first ones create optimizer state, which a decision before them would not see.
_STEPS_BEFORE_AHEAD = 3
# Steps whose remaining memory (gradients) is remembered.
_KEPT_STEPS = 8


@dataclass(frozen=True)
class Part:
    """A part of a batch, to run forward and backward."""

    batch: Any
    #: The part's share of the batch's samples: multiply the mean loss of the part by it. 1.0 if the batch is not split.
    weight: float
    index: int
    count: int

    @property
    def is_last(self) -> bool:
        """Whether gradients are complete after it."""
        return self.index == self.count - 1


@dataclass(frozen=True)
class StepDecision:
    """What all ranks do with a step's batch. Sizes are bytes of this rank."""

    #: ``"run"``, ``"split"``, ``"skip"`` or ``"stop"``.
    action: str
    #: Parts of the batch: 1 if it runs whole, 0 if it does not run. A rank with fewer samples may run fewer under DDP.
    parts: int
    #: The rank whose prediction decided; ``None`` if the batch runs whole.
    rank: int | None
    #: A rank that could not predict; ``None`` if all could.
    failed_rank: int | None
    #: The batch of this rank; ``None`` if its shape is unknown.
    shape: BatchShape | None
    #: What this rank predicted for the whole batch; ``None`` if nothing was known.
    prediction: Prediction | None
    #: What tensors could take on this rank's device; ``None`` if it is not known.
    room_bytes: int | None


class StepStopped(TidemarkError):
    """A batch does not fit and ``otherwise="stop"``. Raised on all ranks at the same step; ``decision`` has the reason."""

    def __init__(self, text: str, decision: StepDecision) -> None:
        super().__init__(text)
        self.decision = decision


class StepGuard:
    """Avoids running out of memory in rare long batches, on all ranks alike.

    ```python
    guard = tidemark.StepGuard(model)
    for batch in loader:
        for part in guard.parts(batch):
            loss = criterion(model(part.batch["x"]), part.batch["y"])     # a mean over the samples
            (loss * part.weight).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    ```

    Before a step each rank predicts what its batch needs from the batch's shape (``law``), compares it with the free memory,
    and one all-reduce of five integers in the job's own process group decides for all ranks: run the batch, split it into
    parts, skip it, or stop. The gradients of a split batch equal those of the whole one if the loss is a mean over samples;
    layers that use other samples (BatchNorm) or random numbers (dropout) differ, as with gradient accumulation. Under
    DistributedDataParallel only the last part reduces gradients.

    All ranks have to make the same calls in the same order. Not thread-safe. PyTorch's peak counters of the device are reset
    in each step.

    Attributes:
        law: what the steps of this rank need.
        decision: the last one; ``None`` before the first step.
        counts: steps by action.
        emptied: how often this rank emptied the allocator's cache before a large batch.
    """

    def __init__(
        self,
        model: Any,
        *,
        process_group: Any | None = None,
        device: Any | None = None,
        otherwise: str = "skip",
        max_parts: int | None = None,
        margin: float = 0.05,
        timeout: float = 600.0,
        shape: Callable[[Any], tuple[int, int]] | None = None,
        split: Callable[[Any, int, int], Any] | None = None,
        equal_parts: bool | None = None,
        memory: DeviceMemory | None = None,
    ) -> None:
        """Make a guard; all ranks have to, with the same arguments.

        Args:
            model: The module whose steps are guarded, as it is called: wrapped by DDP or FSDP if the job uses them.
            process_group: Of the ranks that have to agree; the default group if there is one. With a backend for CPU tensors
                (``init_process_group("cpu:gloo,cuda:nccl")``) agreeing does not involve the device.
            device: Such as ``"cuda:1"``; by default that of the model's first parameter. On the CPU no peaks are known: batches
                always run whole, unless another rank decides differently or ``memory`` is given.
            otherwise: What to do with a batch that does not fit even in the smallest parts: ``"skip"`` it, ``"stop"`` (dump the
                flight recorder and raise StepStopped), or ``"run"`` it in these parts.
            max_parts: The most parts; 1 never splits. By default one for each sample.
            margin: Share of the available memory to leave free, beside what the allocator loses to fragmentation.
            timeout: Seconds to wait for the other ranks.
            shape: ``(samples, length)`` of a batch, for others than nested tensors with the samples first.
            split: ``split(batch, begin, end)`` returns these samples of it, for the same.
            equal_parts: Whether all ranks have to run the same number of parts, because a part has collectives. By default not
                under DDP, and yes under FSDP and for models that are neither.
            memory: Counters of a device other than CUDA.
        """
        if otherwise not in _OTHERWISE:
            raise ValueError(f"otherwise {otherwise!r}: expected {', '.join(_OTHERWISE)}")
        if max_parts is not None and not 1 <= max_parts <= MAX_PARTS:
            raise ValueError(f"max_parts {max_parts!r}: 1 to {MAX_PARTS}")
        if not 0 <= margin < 1:
            raise ValueError(f"margin {margin!r}: a share, from 0 to below 1")
        if not timeout > 0:
            raise ValueError(f"timeout {timeout!r}: above 0 s")
        require_torch("StepGuard")
        self._model = model
        self._otherwise = _OTHERWISE[otherwise]
        self._max_parts = max_parts or MAX_PARTS
        self._margin = margin
        self._shape_of = shape_of if shape is None else _checked(shape)
        self._split = slice_samples if split is None else split
        if device is None:
            device = next((parameter.device for parameter in model.parameters()), None)
        number = device_number(device)
        self._memory = memory if memory is not None else None if number is None else CudaMemory(number)
        self._agreement = Agreement(process_group, number, timeout)
        is_ddp = type(model).__name__ == "DistributedDataParallel"
        self._no_sync: Callable[[], AbstractContextManager[Any]] = model.no_sync if is_ddp else nullcontext
        alone = self._agreement.world_size == 1
        self._equal_parts = not (alone or is_ddp) if equal_parts is None else equal_parts
        self.law = MemoryLaw()
        self.decision: StepDecision | None = None
        self.counts = {"run": 0, "split": 0, "skip": 0, "stop": 0}
        self.emptied = 0
        self._steps = 0
        self._kept: deque[int] = deque(maxlen=_KEPT_STEPS)
        self._largest_split = 2
        self._pending: _Asked | None = None
        self._following: list[Any] = []
        self._is_abandoned = False
        self._running: Iterator[Part] | None = None
        self._said: set[str] = set()

    @property
    def skipped(self) -> bool:
        """Whether the last batch was skipped: there are no gradients, and ``optimizer.step()`` may be left out."""
        return self.decision is not None and self.decision.action == "skip"

    def parts(self, batch: Any) -> Iterator[Part]:
        """Decide about the batch, and yield its parts: one, several, or none if it is skipped.

        Run forward and backward of each part, with the loss multiplied by the part's weight, and let go of its results, such
        as outputs. The decision is that of ``prepare()`` if that was called before. Each rank has to use up the iterator.

        Raises:
            StepStopped: on all ranks, if one does not fit and ``otherwise="stop"``.
            TidemarkError: if the other ranks do not answer in time, or are at another step.
        """
        self._close()
        self._drop_abandoned()
        prepared, self._pending = self._pending, None
        asked = prepared or self._ask(batch)
        agreed = asked.pending.result()
        self._steps += 1
        decision = self._decide(agreed, asked)
        self.decision = decision
        self.counts[decision.action] += 1
        if self._following and self._steps >= _STEPS_BEFORE_AHEAD:
            self.prepare(self._following.pop())
        self._following.clear()
        if decision.action != "run":
            self._say(decision)
        if decision.action == "stop":
            self._stop(decision)
        if asked.want.empties and decision.parts:
            self._measure(self._empty)
        shape = asked.shape if prepared is None else self._try_shape(batch)
        self._running = self._run(batch, shape, decision.parts)
        return self._running

    def prepare(self, batch: Any) -> None:
        """Begin to decide about the next batch, without waiting for the other ranks: ``parts()`` of it then finds the answer.

        Call it on all ranks before the forward pass of the step that comes first, when its batch is decided: the free memory
        of that time counts. Only shapes are read, so the batch may be on the host still.

        Raises:
            TidemarkError: if a prepared batch has not been run yet.
        """
        self._check_nothing_prepared("prepare()")
        self._pending = self._ask(batch)

    def batches(self, loader: Iterable[_Batch]) -> Iterator[_Batch]:
        """The loader's batches, decided one step ahead: the answer of the other ranks is there when ``parts()`` asks for it.

        Reads one batch ahead of the loop. The first steps, which create optimizer state, decide when they begin.
        """
        iterator = iter(loader)
        try:
            batch = next(iterator)
        except StopIteration:
            return
        try:
            for following in iterator:
                self._following = [following]
                yield batch
                batch = following
            self._following = []
            yield batch
        finally:
            self._is_abandoned = True

    def longest_batches(
        self, source: Any, *, lengths: Lengths | None = None, epochs: int = 1, **options: Any
    ) -> tuple[LongestBatch, LongestBatch]:
        """The batch with the most tokens, and the one with the most tokens times length, that a loader will yield.

        Nothing is loaded if lengths are known. The samplers are iterated as the loader would do it next; their generators,
        epochs and all random states are restored. ``load()`` of a batch makes it, such as to run it under ``tidemark plan``.

        Args:
            source: A ``torch.utils.data.DataLoader``, or a data set with ``options``.
            lengths: Of each sample, or a function of a sample. By default the attribute ``lengths`` of the data set or the
                sampler, or a column ``length``; if there is none, each sample is read once, and collated alone.
            epochs: How many to look at, from the sampler's current one.
            **options: Of the loader for a data set: ``batch_size``, ``shuffle``, ``sampler``, ``batch_sampler``,
                ``collate_fn``, ``generator``, ``drop_last``.

        Raises:
            TidemarkError: for a data set without indexes.
            ValueError: for a loader without batches, or too few lengths.
        """
        return longest_batches(loader_of(source, options), lengths, epochs)

    def preflight(
        self, step: Callable[[Any, float], Any], source: Any, *, lengths: Lengths | None = None, epochs: int = 1, **options: Any
    ) -> Preflight:
        """Run the largest batches that a loader will yield, before the first epoch: do they fit, and in how many parts?

        Runs forward and backward of ``longest_batches()`` by ``step(batch, weight)``, as in ``retry_on_oom``: it moves the
        batch to the device, computes the mean loss and calls ``(loss * weight).backward()``. If it runs out of memory, again
        in twice as many parts. Nothing stays: gradients, buffers (such as running statistics), random states and modes are
        restored to the bit, and no optimizer step is made. What was measured goes into ``law``. Optimizer state that the first
        step will create is not in the measurement: call it after one step, or leave room for it.

        All ranks have to call it; each runs its own batches, and all get the same ``parts``. Under DDP nothing is communicated
        besides. With FSDP an out-of-memory error of one rank leaves the others waiting: plan the batch (``tidemark plan``).

        Args:
            step: Forward and backward of a batch. Its errors are raised, other than those for lack of memory.
            source: As in ``longest_batches()``, like the other arguments.
        """
        self._check_nothing_prepared("preflight()")
        found = self.longest_batches(source, lengths=lengths, epochs=epochs, **options)
        # Where a step has collectives, all ranks have to run as many.
        runs = found if found[0] != found[1] or self._equal_parts else found[:1]
        tried = []
        for longest in runs:
            batch = longest.load()
            shape = self._shape_of(batch)
            most = 1 if self._equal_parts else min(self._divisible(batch, shape), self._max_parts)
            trial = Trial(self._model, self._no_sync, self._memory, self._split, step)
            parts, needed, kept = trial.fewest_parts(batch, shape.samples, most)
            if parts == 1 and needed is not None:
                self.law.add(shape, needed, kept)
            tried.append(TriedBatch(longest, shape, parts, needed))
        fits = all(one.parts is not None for one in tried)
        parts = max(one.parts or 0 for one in tried)
        vote = Vote(SPLIT if fits else STOP, parts, self._agreement.rank, 1, self._steps, None)
        agreed = self._agreement.start(vote).result()
        return Preflight(None if agreed.action == STOP else agreed.parts, agreed.rank, tried)

    def forget(self) -> None:
        """Forget the measured steps, after a change of the model that changes its memory, such as layers that are unfrozen."""
        self.law = MemoryLaw()
        self._kept.clear()

    def _ask(self, batch: Any) -> _Asked:
        shape, failed, samples = None, False, 1
        want = _Want(RUN, 1)
        try:
            shape = self._shape_of(batch)
            samples = self._divisible(batch, shape)
            want = self._want(shape, samples)
        except Exception as error:  # the other ranks wait for this one's vote, whatever happened
            failed = True
            self._warn_once(f"{type(error).__name__}", f"rank {self._agreement.rank} cannot predict its step: {error!r}")
            if min(samples, self._max_parts) > 1:
                want = _Want(SPLIT_IN_DOUBT, min(samples, self._max_parts, self._largest_split))
        rank = self._agreement.rank
        vote = Vote(want.action, want.parts, rank, samples, self._steps, rank if failed else None)
        return _Asked(self._agreement.start(vote), shape, want)

    def _divisible(self, batch: Any, shape: BatchShape) -> int:
        """Into how many parts the batch can be split: its samples, or 1 if only the program knows how."""
        if self._split is slice_samples and self._shape_of is not shape_of:
            try:
                return shape.samples if shape_of(batch).samples == shape.samples else 1
            except ValueError:
                return 1
        return shape.samples

    def _want(self, shape: BatchShape, samples: int) -> _Want:
        """What is best for this rank's batch."""
        if self._memory is None:
            return _Want(RUN, 1)
        whole = self.law.predict(shape)
        if whole is None:
            return _Want(RUN, 1)
        available = self._memory.room(self._with_margin(whole.bound_bytes), False)
        if self._with_margin(whole.bound_bytes) <= available:
            return _Want(RUN, 1, whole, available)
        available = self._memory.room(self._with_margin(whole.bound_bytes), True)
        if self._with_margin(whole.bound_bytes) <= available:
            return _Want(RUN, 1, whole, available, True)
        kept = max(self._kept, default=0)

        def fits(parts: int) -> bool:
            part = self.law.predict(BatchShape(ceil(shape.samples / parts), shape.length))
            return part is not None and self._with_margin(part.bound_bytes + kept) <= available

        most = min(samples, self._max_parts)
        if most > 1 and fits(most):
            low, high = 1, most  # the fewest parts that fit are above low, and at most high
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if fits(middle) else (middle, high)
            return _Want(SPLIT if whole.is_fitted else SPLIT_IN_DOUBT, high, whole, available, True)
        # Nothing is given up in doubt: only if what the smallest parts are expected to need does not fit, not its bound.
        least = self.law.predict(BatchShape(ceil(shape.samples / most), shape.length))
        expected = None if least is None else least.expected_bytes
        if expected is not None and self._with_margin(expected + kept) > available and self._otherwise != RUN:
            return _Want(self._otherwise, 1, whole, available)
        return _Want(SPLIT_IN_DOUBT if most > 1 else RUN, most, whole, available, True)

    def _with_margin(self, needed: float) -> float:
        return needed / (1 - self._margin)

    def _decide(self, agreed: Vote, asked: _Asked) -> StepDecision:
        """The same on all ranks, but for what only this one knows."""
        action, parts = agreed.action, agreed.parts
        if action in (SPLIT, SPLIT_IN_DOUBT) and self._equal_parts and parts > agreed.samples:
            # Another rank cannot run as many parts.
            parts = agreed.samples
            if action == SPLIT and self._otherwise != RUN:
                action = self._otherwise
        if action in (SPLIT, SPLIT_IN_DOUBT):
            self._largest_split = max(self._largest_split, parts)
            action = action if parts > 1 else RUN
        return StepDecision(
            _NAMES[action],
            0 if action in (SKIP, STOP) else parts,
            None if agreed.action == RUN else agreed.rank,
            agreed.failed_rank,
            asked.shape,
            asked.want.prediction,
            asked.want.room,
        )

    def _run(self, batch: Any, shape: BatchShape | None, count: int) -> Iterator[Part]:
        if count == 0:
            return
        parts = 1 if shape is None or count == 1 else min(count, self._divisible(batch, shape))
        if shape is None or parts == 1:
            yield from self._measured(Part(batch, 1.0, 0, 1), shape)
            return
        bounds = part_bounds(shape.samples, parts)
        for index, (begin, end) in enumerate(bounds):
            part = Part(self._split(batch, begin, end), (end - begin) / shape.samples, index, len(bounds))
            with nullcontext() if part.is_last else self._no_sync():
                yield from self._measured(part, BatchShape(end - begin, shape.length))

    def _measured(self, part: Part, shape: BatchShape | None) -> Iterator[Part]:
        memory = self._memory
        if memory is None or shape is None:
            yield part
            return
        before: list[int] = []

        def begin() -> None:
            memory.reset_peak()
            before.append(memory.allocated())

        def end() -> None:
            kept = memory.allocated() - before[0]
            if part.index == 0:
                self._kept.append(max(0, kept))
            self.law.add(shape, memory.peak() - before[0], kept)

        self._measure(begin)
        yield part
        if before:
            self._measure(end)

    def _empty(self) -> None:
        if self._memory is not None:
            self._memory.empty()
            self.emptied += 1

    def _measure(self, call: Callable[[], None]) -> None:
        """An error of the counters must not end the step of one rank alone."""
        try:
            call()
        except Exception as error:
            self._warn_once(type(error).__name__, f"rank {self._agreement.rank} cannot measure its step: {error!r}")

    def _check_nothing_prepared(self, what: str) -> None:
        self._drop_abandoned()
        if self._pending is not None:
            raise TidemarkError(f"StepGuard.{what}: the batch prepared before has not been run: call parts() of it first")

    def _drop_abandoned(self) -> None:
        """Forget the decision about a batch that ``batches()`` read ahead for a loop that ended before it."""
        if self._is_abandoned:
            self._is_abandoned = False
            pending, self._pending = self._pending, None
            if pending is not None:
                pending.pending.result()

    def _try_shape(self, batch: Any) -> BatchShape | None:
        try:
            return self._shape_of(batch)
        except Exception:  # said when the vote was made
            return None

    def _close(self) -> None:
        """End a step that the loop left in the middle: its peak does not count."""
        running, self._running = self._running, None
        if running is not None:
            running.close()  # type: ignore[attr-defined]

    def _stop(self, decision: StepDecision) -> None:
        recorder = ask_for_dump()
        dumped = "" if recorder is None else f"; the flight recorder (process {recorder}) writes its recording"
        raise StepStopped(f"StepGuard: {_reason(decision, self._agreement.rank)}; stopped before the step{dumped}", decision)

    def _say(self, decision: StepDecision) -> None:
        what = f"split into {decision.parts} parts" if decision.action == "split" else decision.action
        _recorder.mark(f"step guard: {what}")
        count = self.counts[decision.action]
        if count & (count - 1) == 0:  # the 1st, 2nd, 4th, ...
            reason = _reason(decision, self._agreement.rank)
            package_logger().warning("StepGuard: step %d: %s: %s (%d so far)", self._steps - 1, what, reason, count)

    def _warn_once(self, key: str, text: str) -> None:
        if key not in self._said:
            self._said.add(key)
            package_logger().warning("StepGuard: %s", text, exc_info=True)


class _Want(NamedTuple):
    """What this rank wants, and why."""

    action: int
    parts: int
    prediction: Prediction | None = None
    #: Bytes available to tensors; ``None`` if they were not asked for.
    room: int | None = None
    #: Whether the allocator's cache has to be emptied before the step: no other rank has to know.
    empties: bool = False


class _Asked(NamedTuple):
    pending: PendingVote
    shape: BatchShape | None
    want: _Want


def _checked(shape: Callable[[Any], tuple[int, int]]) -> Callable[[Any], BatchShape]:
    def checked(batch: Any) -> BatchShape:
        found = BatchShape(*shape(batch))
        if found.samples < 1 or found.length < 1:
            raise ValueError(f"shape= returned {tuple(found)}: samples and length are 1 or more")
        return found

    return checked


def _reason(decision: StepDecision, rank: int) -> str:
    if decision.rank is not None and decision.rank != rank:
        return f"rank {decision.rank} needs it"
    if decision.failed_rank == rank or decision.prediction is None or decision.room_bytes is None or decision.shape is None:
        return "this rank could not predict its step"
    shape = decision.shape
    needed, room = bytes_text(int(decision.prediction.bound_bytes)), bytes_text(decision.room_bytes)
    return f"a batch of {shape.samples} samples of length {shape.length} may need {needed}, {room} are available"
