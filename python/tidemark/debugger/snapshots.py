"""The quick functions: a snapshot of memory, changes between two, a function's change, a check, a cleanup, a report."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Callable, TypeVar

from tidemark._clock import steady_time
from tidemark._language import say
from tidemark._sizes import MIB, signed_mb, to_mb
from tidemark._torch import torch_if_loaded
from tidemark.debugger.checkpoints import gpu_changes
from tidemark.debugger.devices import gpu_memory, host_memory
from tidemark.debugger.issues import fragmented_mb
from tidemark.debugger.live_tensors import live_tensors
from tidemark.debugger.log import debug_logger
from tidemark.debugger.report_file import write_report
from tidemark.debugger.result import Result, difference

T = TypeVar("T")
_KEPT = 1000
_SNAPSHOTS: list[Result] = []


def measure(name: str) -> Result:
    """Memory now: ``name``, ``timestamp``, ``time``, ``gpu_memory`` (a row for each GPU), ``system_memory``."""
    return Result(
        name=name,
        timestamp=datetime.now().isoformat(timespec="microseconds"),
        time=steady_time(),
        gpu_memory=gpu_memory(),
        system_memory=host_memory(),
    )


def memory_lines(sample: Mapping[str, Any], lang: str | None) -> list[str]:
    """``GPU 0: 1234.5MB / 11264.0MB (10.9%)`` for each GPU; without one the process's memory."""
    lines = [
        f"GPU {row['device_id']}: {row['allocated_mb']:.1f}MB / {row['total_mb']:.1f}MB ({row['utilization_percent']:.1f}%)"
        for row in sample["gpu_memory"]
    ]
    host = sample["system_memory"]
    if not lines and host["process_mb"] is not None and host["total_mb"]:
        percent = 100 * host["process_mb"] / host["total_mb"]
        template = "CPU mode: process {mb:.1f}MB / {total:.1f}MB ({percent:.1f}%)"
        lines.append(say(template, lang, mb=host["process_mb"], total=host["total_mb"], percent=percent))
    return lines


def memory_snapshot(name: str = "snapshot", lang: str | None = None) -> Result:
    """Take and log a snapshot of the memory in use.

    ``gpu_memory`` has a row for each GPU with ``allocated_mb``, ``reserved_mb``, ``total_mb``, ``utilization_percent`` and more
    (MiB), ``system_memory`` the host's. Without CUDA there are no rows.
    """
    sample = measure(str(name))
    logger = debug_logger()
    logger.info("%s", say("Memory snapshot: {name}", lang, name=name))
    for line in memory_lines(sample, lang):
        logger.info("  %s", line)
    _SNAPSHOTS.append(sample)
    del _SNAPSHOTS[:-_KEPT]
    return sample


def compare_snapshots(before: str | Mapping[str, Any], after: str | Mapping[str, Any], lang: str | None = None) -> Result:
    """Compare and log two snapshots, given directly or by name.

    ``gpu_changes`` has a row for each GPU with ``memory_change_mb``, ``reserved_change_mb`` and ``utilization_change``
    (percent), ``system_change`` the process's ``process_change_mb``. Raises KeyError if there is no snapshot with a name.
    """
    first, second = _find(before), _find(after)
    changes = gpu_changes(first["gpu_memory"], second["gpu_memory"])
    process = difference(second["system_memory"]["process_mb"], first["system_memory"]["process_mb"])
    logger = debug_logger()
    logger.info("%s", say("Memory snapshots compared: {before} and {after}", lang, before=first["name"], after=second["name"]))
    for row in changes:
        template = "  GPU {gpu}: memory {change}, utilization {percent:+.1f}%"
        change = signed_mb(row["memory_change_bytes"])
        logger.info("%s", say(template, lang, gpu=row["device_id"], change=change, percent=row["utilization_change"] or 0.0))
    if not changes and process is not None:
        logger.info("%s", say("  CPU mode: process {change}", lang, change=signed_mb(process * MIB)))
    return Result(
        {"from": first["name"], "to": second["name"]},
        seconds=second["time"] - first["time"],
        gpu_changes=changes,
        system_change=Result(process_change_mb=process),
    )


def monitor_function(fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> tuple[T, Result]:
    """Call ``fn(*args, **kwargs)``; returns its value and the change of memory, as ``compare_snapshots`` does.

    ``peak_mb`` in each GPU's row is the allocated peak if it is a new maximum (PyTorch's peak counter is not reset, as the
    program may read it), else None. Exceptions of ``fn`` are passed on.
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    before = memory_snapshot(f"{name}: before")
    value = fn(*args, **kwargs)
    after = memory_snapshot(f"{name}: after")
    comparison = compare_snapshots(before, after)
    comparison["function"] = name
    for row, old, new in zip(comparison["gpu_changes"], before["gpu_memory"], after["gpu_memory"]):
        row["peak_mb"] = new["max_allocated_mb"] if new["max_allocated_mb"] > old["max_allocated_mb"] else None
    return value, comparison


def check_memory_status(threshold_mb: float = 500.0, lang: str | None = None) -> list[Result]:
    """Check memory now, and log each issue as a warning: use above a threshold (MiB) and fragmentation.

    On a GPU PyTorch's allocated memory is checked, without one the tensors held by Python. Each issue has ``kind``, ``device``,
    ``memory_mb``, ``threshold_mb`` and ``message``.
    """
    rows = gpu_memory()
    used = {row["device"]: row["allocated_bytes"] for row in rows}
    for tensor in live_tensors().values():
        if not tensor.device.startswith("cuda"):
            used[tensor.device] = used.get(tensor.device, 0) + tensor.size
    issues = []
    for device, size in used.items():
        if size > threshold_mb * MIB:
            title = device.replace("cuda:", "GPU ").replace("cpu", "CPU")
            template = "{device} uses more memory than the threshold: {mb:.1f}MB > {limit:.1f}MB"
            message = say(template, lang, device=title, mb=size / MIB, limit=threshold_mb)
            issues.append(
                Result(kind="above_threshold", device=device, memory_mb=to_mb(size), threshold_mb=threshold_mb, message=message)
            )
    for row in rows:
        wasted = fragmented_mb(row)
        if wasted is not None:
            message = say("GPU {gpu}: {mb:.1f}MB held and not used", lang, gpu=row["device_id"], mb=wasted)
            issues.append(
                Result(kind="fragmentation", device=row["device"], memory_mb=wasted, threshold_mb=None, message=message)
            )
    for issue in issues:
        debug_logger().warning("%s", issue["message"])
    return issues


def cleanup_memory(lang: str | None = None) -> Result:
    """Collect garbage and return PyTorch's unused GPU memory to the driver.

    Returns ``freed_mb`` (reserved memory returned, all GPUs), ``collected_objects`` and ``gpu_changes``.
    """
    before = measure("cleanup: before")
    collected = gc.collect()
    torch: Any = torch_if_loaded()
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    after = measure("cleanup: after")
    changes = gpu_changes(before["gpu_memory"], after["gpu_memory"])
    freed = sum((-row["reserved_change_mb"] for row in changes), 0.0)
    template = "Memory cleaned up: {mb:.1f}MB given back, {objects} objects collected"
    debug_logger().info("%s", say(template, lang, mb=freed, objects=collected))
    return Result(freed_mb=freed, collected_objects=collected, gpu_changes=changes)


def generate_report(output_file: str | os.PathLike[str] | None = None, lang: str | None = None) -> str:
    """The snapshots of this process so far, and memory now, as text; also written to a file if one is given.

    In a file with a name that ends in ``.json`` they are ``snapshots``, as returned by ``memory_snapshot()``, and ``now``.
    """
    now = measure(say("now", lang))
    lines = [say("Memory report", lang), "=" * 80]
    for sample in [*_SNAPSHOTS, now]:
        lines.append(f"{sample['timestamp']}  {sample['name']}")
        lines += [f"  {line}" for line in memory_lines(sample, lang)]
    text = "\n".join(lines)
    debug_logger().info("%s", text)
    if output_file:
        write_report(output_file, text, {"snapshots": _SNAPSHOTS, "now": now})
    return text


def _find(which: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(which, Mapping) and "gpu_memory" in which:
        return which
    if not isinstance(which, str):
        raise TypeError(say("{what!r} is neither a snapshot, as memory_snapshot() returns it, nor the name of one", what=which))
    for sample in reversed(_SNAPSHOTS):
        if sample["name"] == which:
            return sample
    known = ", ".join(dict.fromkeys(sample["name"] for sample in _SNAPSHOTS)) or "none"
    raise KeyError(say("there is no snapshot {name!r}; there are: {known}", name=which, known=known))
