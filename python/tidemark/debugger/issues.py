"""Issues found in memory samples: growth, use above a threshold, sudden growth, fragmentation."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tidemark._language import say
from tidemark.debugger.result import Result

#: Percent of a device's memory.
HIGH_USE_PERCENT = 95.0
#: From one sample to the next.
SUDDEN_GROWTH_MB = 500.0
#: Share of the reserved memory, and minimum size.
FRAGMENTED_SHARE, FRAGMENTED_MB = 0.3, 64.0
#: The minimum of each part of the samples has to grow by this, three times.
STEADY_GROWTH_MB = 1.0
_PARTS = 4


def find_issues(samples: Sequence[Mapping[str, Any]], growth_mb: float = SUDDEN_GROWTH_MB) -> Result:
    """Issues in samples ordered by time, each with ``gpu_memory`` and ``name`` or ``timestamp``.

    Returns ``memory_leaks``, ``excessive_usage``, ``abnormal_growth`` and ``fragmentation``, each a list.
    """
    issues = Result(memory_leaks=[], excessive_usage=[], abnormal_growth=[], fragmentation=[])
    devices = sorted({row["device_id"] for sample in samples for row in sample["gpu_memory"]})
    for device in devices:
        series = [(_label(sample), row) for sample in samples for row in sample["gpu_memory"] if row["device_id"] == device]
        _growth(device, series, growth_mb, issues)
        _steady_growth(device, series, issues)
        for label, row in series:
            if (row["utilization_percent"] or 0) > HIGH_USE_PERCENT:
                issues["excessive_usage"].append(
                    Result(checkpoint=label, gpu_id=device, utilization_percent=row["utilization_percent"])
                )
            wasted = fragmented_mb(row)
            if wasted is not None:
                issues["fragmentation"].append(
                    Result(checkpoint=label, gpu_id=device, wasted_mb=wasted, fragmentation_ratio=wasted / row["reserved_mb"])
                )
    return issues


def fragmented_mb(row: Mapping[str, Any]) -> float | None:
    """Memory that a device's allocator holds and does not use, if it is a large share; else None."""
    wasted: float = row["reserved_mb"] - row["allocated_mb"]
    return wasted if wasted > FRAGMENTED_MB and wasted > FRAGMENTED_SHARE * row["reserved_mb"] else None


def _growth(device: int, series: Sequence[tuple[str, Mapping[str, Any]]], limit_mb: float, issues: Result) -> None:
    for (before, old), (after, new) in zip(series, series[1:]):
        growth = new["allocated_mb"] - old["allocated_mb"]
        if growth > limit_mb:
            issues["abnormal_growth"].append(
                Result(from_checkpoint=before, to_checkpoint=after, gpu_id=device, growth_mb=growth)
            )


def _steady_growth(device: int, series: Sequence[tuple[str, Mapping[str, Any]]], issues: Result) -> None:
    """A leak is never released: the minimum in use grows from each part of the samples to the next."""
    size = len(series) // _PARTS
    if size < 2:
        return
    least = [min(row["allocated_mb"] for _, row in series[part * size : (part + 1) * size]) for part in range(_PARTS)]
    if all(after - before > STEADY_GROWTH_MB for before, after in zip(least, least[1:])):
        issues["memory_leaks"].append(Result(gpu_id=device, growth_mb=least[-1] - least[0], samples=len(series)))


def _label(sample: Mapping[str, Any]) -> str:
    return str(sample.get("name") or sample["timestamp"])


def log_issues(issues: Mapping[str, Any], logger: logging.Logger, lang: str | None) -> None:
    """A warning for each issue."""
    for issue in issues["memory_leaks"]:
        logger.warning(say("GPU {gpu}: memory grows steadily, by {mb:.1f}MB", lang, gpu=issue["gpu_id"], mb=issue["growth_mb"]))
    for issue in issues["abnormal_growth"]:
        template = "GPU {gpu}: sudden growth by {mb:.1f}MB, {before} to {after}"
        before, after = issue["from_checkpoint"], issue["to_checkpoint"]
        logger.warning(say(template, lang, gpu=issue["gpu_id"], mb=issue["growth_mb"], before=before, after=after))
    for issue in issues["excessive_usage"]:
        template = "GPU {gpu}: {percent:.1f}% of its memory in use at {name}"
        logger.warning(say(template, lang, gpu=issue["gpu_id"], percent=issue["utilization_percent"], name=issue["checkpoint"]))
    for issue in issues["fragmentation"]:
        template = "GPU {gpu}: fragmentation, {mb:.1f}MB held and not used at {name}"
        logger.warning(say(template, lang, gpu=issue["gpu_id"], mb=issue["wasted_mb"], name=issue["checkpoint"]))
