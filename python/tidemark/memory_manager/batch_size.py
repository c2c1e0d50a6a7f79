"""The largest batch size that fits, from a few whole steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark import _engine
from tidemark._errors import TidemarkError
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
    """A size that was tried."""

    batch_size: int
    fits: bool
    #: Peak allocation of PyTorch on the device; ``None`` if the step failed, and on the CPU.
    peak_bytes: int | None
    #: Whether the step left more memory than before, like a first one that creates optimizer state: its peak is not used.
    warmed_up: bool


@dataclass(frozen=True)
class BatchSize:
    """Result of ``auto_batch_size()``."""

    #: The largest size that was tried and fit; ``None`` if none did.
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
            "train.py", "--batch-size", "{batch_size}"]``.

    Raises:
        ValueError: for invalid arguments.
        TidemarkError: on the CPU without a maximum.
    """
    if max_probes < 1:
        raise ValueError(f"max_probes {max_probes!r}: 1 or more")
    if plan is not None:
        check_command(plan)
    options: dict[str, Any] = {"start": start, "maximum": maximum, "multiple_of": multiple_of, "margin": margin}
    search = _Search(fn, device_number(device), max_probes, options)
    if search.device is None and maximum is None:
        raise TidemarkError(
            "auto_batch_size: the CPU has no limit that PyTorch reports, and the kernel ends a process that takes too much: "
            "give maximum=, or run it where PyTorch sees a CUDA device (tidemark plan has one that is not there)"
        )
    if plan is not None and search.device is not None:
        return search.confirm(plan_sizes(plan, search.device, **options))
    return search.run()


class _Search:
    def __init__(self, fn: Callable[[int], object], device: int | None, max_probes: int, options: dict[str, Any]) -> None:
        self.device = device
        self._fn = fn
        self._left = max_probes
        self._options = options
        self._smallest = int(options["multiple_of"])
        self._search = self._begin()
        self._probes: list[BatchProbe] = []
        self._limit: int | None = None

    def _begin(self) -> Any:
        options = self._options
        return _engine.batch_search(options["start"], options["maximum"], options["multiple_of"], options["margin"], self._left)

    def run(self, planned: Sequence[PlannedSize] = ()) -> BatchSize:
        while (size := _engine.next_batch(self._search)) is not None:
            self._try(size)
        ended, batch_size, does_not_fit, slope, intercept = _engine.batch_result(self._search)
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
        probe = _probe(self._fn, size, self.device)
        self._left -= 1
        self._probes.append(probe)
        self._limit = None if self.device is None else memory_limit(self.device)
        _engine.report_batch(self._search, size, probe.fits, probe.peak_bytes if probe.warmed_up else None, self._limit)
        return probe


def _probe(fn: Callable[[int], object], size: int, device: int | None) -> BatchProbe:
    free_caches(device)
    meter = None if device is None else PeakMeter(device)
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
    free_caches(device)
    return BatchProbe(size, fits, peak, meter is None or meter.kept() < _KEPT_BYTES)
