"""Memory in use now: each GPU by PyTorch's counters, and the host by the kernel's."""

from __future__ import annotations

from typing import Any

from tidemark._resident import resident_bytes, sizes_in
from tidemark._sizes import to_mb
from tidemark._torch import torch_if_installed
from tidemark.debugger.result import Result


def gpu_memory() -> list[Result]:
    """A row for each CUDA device; empty without CUDA.

    ``allocated``, ``reserved``, ``max_allocated`` and ``max_reserved`` are PyTorch's counters, ``total`` the device's memory,
    in bytes (``…_bytes``) and MiB (``…_mb``); ``free_mb`` is the memory not held by PyTorch, ``utilization_percent`` the
    allocated share.
    """
    torch: Any = torch_if_installed()
    if torch is None or not torch.cuda.is_available():
        return []
    rows = []
    for device in range(torch.cuda.device_count()):
        total = int(torch.cuda.get_device_properties(device).total_memory)
        stats = torch.cuda.memory_stats(device)
        sizes = {
            "allocated": int(stats.get("allocated_bytes.all.current", 0)),
            "reserved": int(stats.get("reserved_bytes.all.current", 0)),
            "max_allocated": int(stats.get("allocated_bytes.all.peak", 0)),
            "max_reserved": int(stats.get("reserved_bytes.all.peak", 0)),
            "total": total,
        }
        row = Result(device_id=device, device=f"cuda:{device}", name=str(torch.cuda.get_device_name(device)))
        row.update({f"{name}_bytes": size for name, size in sizes.items()})
        row.update({f"{name}_mb": to_mb(size) for name, size in sizes.items()})
        row["free_mb"] = to_mb(total - sizes["reserved"])
        row["utilization_percent"] = 100 * sizes["allocated"] / total if total else None
        rows.append(row)
    return rows


def host_memory() -> Result:
    """The host's memory and this process's resident part, in MiB; None if /proc does not have it.

    Keys: ``total_mb``, ``available_mb``, ``used_percent``, ``process_mb`` and ``process_bytes``.
    """
    machine = sizes_in("/proc/meminfo")
    total, available = machine.get("MemTotal"), machine.get("MemAvailable")
    process = resident_bytes()
    used = None if not total or available is None else 100 * (total - available) / total
    return Result(
        total_mb=to_mb(total),
        available_mb=to_mb(available),
        used_percent=used,
        process_mb=to_mb(process),
        process_bytes=process,
    )
