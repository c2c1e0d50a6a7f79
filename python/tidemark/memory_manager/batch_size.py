"""The largest batch size that fits, on all ranks of a job, from a few whole steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark._ranks import collectives_issued
from tidemark.memory_manager.agreed_trials import AgreedTrials, Trial
from tidemark.memory_manager.cuda_counters import PeakMeter, device_number, memory_limit
from tidemark.memory_manager.out_of_memory import forget, free_caches, is_out_of_memory
from tidemark.memory_manager.planned_sizes import PlannedSize, check_command, plan_sizes

# A peak within this share of the planned one counts as equal.
_PLAN_SHARE = 0.01
# Share of the planned size to try if that does not fit.
_BELOW_PLAN = 0.85
# Memory that a step may leave allocated and still be like the next one: less than the state of a parameter.
_KEPT_BYTES = 1 << 20

_ENDS = {
    "found": "no size that is larger by more than the margin fits",
    "maximum": "the largest size asked for fits",
    "nothing_fits": "not even the smallest size fits",
    "probes": "the probes were used up: a larger size may fit",
}


@dataclass(frozen=True)
class BatchProbe:
    """A size that was tried, on all ranks."""

    batch_size: int
    #: On all ranks.
    fits: bool
    #: Peak allocation of PyTorch on this rank's device; ``None`` if the step failed here, and on the CPU.
    peak_bytes: int | None
    #: Whether the step of no rank left more memory than before, unlike a first one that creates optimizer state: the peak of
    #: such a step is not used.
    warmed_up: bool
    #: The rank on which it did not fit, the highest one of several; ``None`` if it fits.
    rank: int | None = None


@dataclass(frozen=True)
class BatchSize:
    """Result of ``auto_batch_size()``: the same on all ranks, but peaks, slope, intercept and limit are those of this rank."""

    #: The largest size that was tried and fit on all ranks; ``None`` if none did.
    batch_size: int | None
    #: In the order in which they were tried.
    probes: list[BatchProbe]
    #: Bytes of the peak per sample; ``None`` if fewer than two peaks are known.
    slope_bytes: float | None
    #: Bytes of the peak that do not depend on the number of samples.
    intercept_bytes: float | None
    #: The smallest size that was tried and did not fit.
    does_not_fit: int | None
    #: Bytes available for the peak; ``None`` on the CPU.
    limit_bytes: int | None
    #: ``"found"``, ``"maximum"``, ``"nothing_fits"`` or ``"probes"``.
    ended: str
    #: The same as a sentence.
    reason: str
    #: Sizes tried on the phantom GPU before, with ``plan=``.
    planned: list[PlannedSize] = field(default_factory=list)


def auto_batch_size(
    fn: Callable[[int], object],
    *,
    start: int = 1,
    maximum: int | None = None,
    multiple_of: int = 1,
    margin: float = 0.05,
    max_probes: int = 8,
    device: Any | None = None,
    plan: Sequence[str] | None = None,
    process_group: Any | None = None,
    timeout: float = 600.0,
) -> BatchSize:
    """Find the largest batch size that fits the device, by running ``fn(batch_size)`` with a few sizes.

    ``fn`` runs one whole training step with a batch of that size: forward, backward, optimizer, and the gradients set to
    ``None``. Steps change the model and the optimizer: keep a copy of their state if needed. The size limit is computed from
    PyTorch's peaks for a few sizes. An out-of-memory error is caught and counts as an upper bound: nothing of the failed step
    is kept and the caches are emptied; its gradients stay until ``fn`` sets them to ``None``, preferably at its beginning.
    PyTorch's peak counters of the device are reset. Return values of ``fn`` are dropped.

    With ``plan``, the program's own command, sizes are tried first by ``tidemark plan``: on a simulated GPU like this one, in
    separate processes. The real one then runs only the size found, once or twice, and further ones only if its peak differs. If
    the program cannot be planned, the log has the reason.

    In a ``torch.distributed`` job all ranks have to call it, with the same arguments. They try the same sizes, and agree on
    each result by one all-reduce after the trial: a size fits if it fits on all ranks, and the result is the same everywhere.
    ``fn`` must not communicate, because the other ranks would wait for one that runs out of memory: run ``model.module`` in
    place of a DDP model, and no collectives for logging. If a trial has communicated, all ranks raise an error after it. Errors
    of ``fn`` are raised on their rank; the others raise TidemarkError.

    On the CPU no limit is known before the kernel ends the process: a ``maximum`` is required, sizes are tried up to it without
    a forecast, and only an out-of-memory error means that a size does not fit.

    Args:
        fn: One training step.
        start: The first size tried.
        maximum: The largest useful size, such as that of the data set.
        multiple_of: Sizes are multiples of it.
        margin: How far below the largest size that fits the result may be: a share.
        max_probes: Run ``fn`` at most this often.
        device: Such as ``"cuda:1"``; the current one by default.
        plan: A command that makes a few training steps, with ``{batch_size}`` in place of the batch size: ``[sys.executable,
            "train.py", "--batch-size", "{batch_size}"]``. Not with several ranks.
        process_group: Of the ranks that have to agree; the default group if there is one. ``False``: this rank alone.
        timeout: Seconds to wait for the trials of other ranks.

    Raises:
        ValueError: for invalid arguments.
        TidemarkError: on the CPU without a maximum; with ``plan`` on several ranks; if another rank fails, does not answer in
            time or has other arguments, or a trial communicates.
    """
    options: dict[str, Any] = {"start": start, "maximum": maximum, "multiple_of": multiple_of, "margin": margin}
    number = device_number(device)
    trials = AgreedTrials(process_group, number, timeout)
    try:
        _check(number, max_probes, maximum, plan, trials.world_size)
        search = _Search(fn, number, max_probes, options, trials)
    except Exception:
        trials.fail(0)
        raise
    trials.begin((options, max_probes))
    if plan is not None and number is not None:
        return search.confirm(plan_sizes(plan, number, **options))
    return search.run()


def _check(device: int | None, max_probes: int, maximum: int | None, plan: Sequence[str] | None, ranks: int) -> None:
    if max_probes < 1:
        raise ValueError(f"max_probes {max_probes!r}: 1 or more")
    if plan is not None:
        check_command(plan)
        if ranks > 1:
            raise TidemarkError(
                "auto_batch_size: plan= is for one process: give the size that it finds as start= to several ranks"
            )
    if device is None and maximum is None:
        raise TidemarkError(
            "auto_batch_size: the CPU has no limit that PyTorch reports, and the kernel ends a process that takes too much: "
            "give maximum=, or run it where PyTorch sees a CUDA device (tidemark plan has one that is not there)"
        )


class _Search:
    def __init__(
        self, fn: Callable[[int], object], device: int | None, max_probes: int, options: dict[str, Any], trials: AgreedTrials
    ) -> None:
        self._device = device
        self._fn = fn
        self._trials = trials
        self._left = max_probes
        self._options = options
        self._smallest = int(options["multiple_of"])
        self._search = self._begin()
        # With the peaks of this rank, where the search has those of all.
        self._own = None if trials.world_size == 1 else self._begin()
        self._probes: list[BatchProbe] = []
        self._limit: int | None = None

    def _begin(self) -> Any:
        options = self._options
        return _engine.batch_search(options["start"], options["maximum"], options["multiple_of"], options["margin"], self._left)

    def run(self, planned: Sequence[PlannedSize] = ()) -> BatchSize:
        while (size := _engine.next_batch(self._search)) is not None:
            self._try(size)
        ended, batch_size, does_not_fit, slope, intercept = _engine.batch_result(self._search)
        if self._own is not None:
            *_, slope, intercept = _engine.batch_result(self._own)
        return BatchSize(
            batch_size, self._probes, slope, intercept, does_not_fit, self._limit, ended, _ENDS[ended], list(planned)
        )

    def confirm(self, planned: Sequence[PlannedSize]) -> BatchSize:
        """Searches from the largest size that fits the phantom GPU."""
        sizes = [one.batch_size for one in planned if one.fits]
        if not sizes:
            return self.run(planned)
        self._options["start"] = max(sizes)
        self._search = self._begin()
        probe = self._try(max(sizes))
        if probe.fits:
            self._suppose(planned, probe)
        elif self._left > 0:
            # The plan is wrong for this GPU: its other sizes are not used.
            self._options["start"] = max(1, int(_BELOW_PLAN * max(sizes)))
            self._search = self._begin()
            _engine.suppose_batch(self._search, max(sizes), False, None)
        return self.run(planned)

    def _suppose(self, planned: Sequence[PlannedSize], probe: BatchProbe) -> None:
        """Assumes that smaller sizes differ as they did on the phantom GPU."""
        peaks = {one.batch_size: one.peak_bytes for one in planned if one.fits and one.peak_bytes is not None}
        if probe.peak_bytes is None or not probe.warmed_up:
            return
        more = probe.peak_bytes - peaks[probe.batch_size]
        for size, peak in peaks.items():
            if size < probe.batch_size:
                _engine.suppose_batch(self._search, size, True, max(0, peak + more))
        if abs(more) > _PLAN_SHARE * probe.peak_bytes:
            return
        for one in planned:
            if not one.fits and self._reaches_limit(one.batch_size, peaks):
                _engine.suppose_batch(self._search, one.batch_size, False, None)

    def _reaches_limit(self, size: int, peaks: dict[int, int]) -> bool:
        """Whether the line through the two largest sizes that fit the phantom GPU comes near the limit there.

        If not, memory was fragmented between the plan's steps, or a convolution requested a workspace that cuDNN does without
        if there is no room: this process may fit more.
        """
        if len(peaks) < 2 or self._limit is None:
            return True
        (below, low), (largest, high) = sorted(peaks.items())[-2:]
        expected = high + (high - low) / (largest - below) * (size - largest)
        return bool(expected >= (1 - self._options["margin"]) * self._limit)

    def _try(self, size: int) -> BatchProbe:
        """Run a step; repeat one that created optimizer state, because its peak differs from later steps."""
        probe = self._probe(size)
        if probe.fits and not probe.warmed_up and size > self._smallest and self._left > 0:
            probe = self._probe(size)
        return probe

    def _probe(self, size: int) -> BatchProbe:
        try:
            own = _try_once(self._fn, size, self._device, self._trials.world_size > 1)
        except Exception:
            self._trials.fail(size)
            raise
        self._limit = own.limit
        agreed = self._trials.agree(size, own)
        self._left -= 1
        _engine.report_batch(self._search, size, agreed.fits, agreed.peak if agreed.warmed_up else None, agreed.limit)
        if self._own is not None:
            _engine.report_batch(self._own, size, agreed.fits, own.peak if agreed.warmed_up else None, own.limit)
        probe = BatchProbe(size, agreed.fits, own.peak, agreed.warmed_up, agreed.rank)
        self._probes.append(probe)
        return probe


def _try_once(fn: Callable[[int], object], size: int, device: int | None, has_others: bool) -> Trial:
    free_caches(device)
    meter = None if device is None else PeakMeter(device)
    before = collectives_issued() if has_others else None
    peak = None
    fits = True
    try:
        fn(size)
        peak = None if meter is None else meter.peak()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        forget(error)
        fits = False
    communicates = before is not None and collectives_issued() != before
    free_caches(device)
    warmed_up = meter is None or meter.kept() < _KEPT_BYTES
    return Trial(fits, warmed_up, peak, None if device is None else memory_limit(device), communicates)
