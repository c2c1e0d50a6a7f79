"""The largest batch size that fits, from a few whole steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark.memory_manager.cuda_counters import PeakMeter, device_number, memory_limit
from tidemark.memory_manager.out_of_memory import forget, free_caches, is_out_of_memory

# What a step may leave allocated and still be like the next one: less than a parameter's state would be worth.
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
    #: Highest allocation of PyTorch on the device; ``None`` where the step failed, and on the CPU.
    peak_bytes: int | None
    #: Whether the step left more than it found, as a first one that makes optimizer state: its peak is not on the line.
    warmed_up: bool


@dataclass(frozen=True)
class BatchSize:
    """What ``auto_batch_size()`` found."""

    #: The largest size that was tried and fitted; ``None``: none did.
    batch_size: int | None
    #: In the order in which they were tried.
    probes: list[BatchProbe]
    #: Bytes of the peak for each sample; ``None`` where fewer than two peaks are known.
    slope_bytes: float | None
    #: Bytes of the peak that no sample is responsible for.
    intercept_bytes: float | None
    #: The smallest size that was tried and did not fit.
    does_not_fit: int | None
    #: Bytes that there are for the peak; ``None`` on the CPU.
    limit_bytes: int | None
    #: ``"found"``, ``"maximum"``, ``"nothing_fits"`` or ``"probes"``.
    ended: str
    #: The same as a sentence.
    reason: str


def auto_batch_size(
    fn: Callable[[int], object],
    *,
    start: int = 1,
    maximum: int | None = None,
    multiple_of: int = 1,
    margin: float = 0.05,
    max_probes: int = 8,
    device: Any | None = None,
) -> BatchSize:
    """Find the largest batch size that fits the device, by running ``fn(batch_size)`` with a few sizes.

    ``fn`` runs one whole training step with a batch of that size: forward, backward, optimizer, and the gradients set to
    ``None``. Steps change the model and the optimizer: keep a copy of their state where that matters. Two small sizes give the
    line of PyTorch's peak over the batch size; a size a little below where it meets the device's memory is tried next, and the
    measurements correct it. Running out of memory is survived and counts as an upper bound: nothing of the failed step is kept
    and the caches are emptied; gradients that it had made stay until ``fn`` sets
    them to ``None``, which it does best at its beginning. PyTorch's peak counters of the device are reset. What ``fn``
    returns is dropped.

    On the CPU there is no limit that could be seen before the kernel ends the process: a ``maximum`` is needed, sizes are tried
    up to it without a forecast, and only errors that say so mean that a size does not fit.

    Args:
        fn: One training step.
        start: The first size tried.
        maximum: No larger size is of use, such as that of the data set.
        multiple_of: Sizes are multiples of it.
        margin: How far below the largest size that fits the result may be: a share.
        max_probes: Run ``fn`` at most so often.
        device: Such as ``"cuda:1"``; the current one by default.

    Raises:
        ValueError: for arguments that are none.
        TidemarkError: on the CPU without a maximum.
    """
    if max_probes < 1:
        raise ValueError(f"max_probes {max_probes!r}: 1 or more")
    search = _engine.batch_search(start, maximum, multiple_of, margin, max_probes)
    number = device_number(device)
    if number is None and maximum is None:
        raise TidemarkError(
            "auto_batch_size: the CPU has no limit that PyTorch reports, and the kernel ends a process that takes too much: "
            "give maximum=, or run it where PyTorch sees a CUDA device (tidemark plan has one that is not there)"
        )
    probes: list[BatchProbe] = []
    limit = None
    while (size := _engine.next_batch(search)) is not None:
        probes.append(_probe(fn, size, number))
        limit = None if number is None else memory_limit(number)
        known = probes[-1].peak_bytes if probes[-1].warmed_up else None
        _engine.report_batch(search, size, probes[-1].fits, known, limit)
    ended, batch_size, does_not_fit, slope, intercept = _engine.batch_result(search)
    return BatchSize(batch_size, probes, slope, intercept, does_not_fit, limit, ended, _ENDS[ended])


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
