"""``@pytest.mark.no_leaks``: the memory that a test leaves behind, and its holders."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Any

from tidemark._sizes import bytes_text, parse_size
from tidemark._testing.meter import clear_workspaces
from tidemark._torch import require_torch, torch_if_loaded

_NAMED = 5  # storages with holders in a message


def allowed_of(item: Any) -> int | None:
    """Bytes that a test may leave; ``None`` without the marker. Raises ``ValueError`` for an invalid marker."""
    marker = item.get_closest_marker("no_leaks")
    if marker is None:
        return None
    if len(marker.args) > 1 or marker.kwargs:
        raise ValueError('write @pytest.mark.no_leaks, or @pytest.mark.no_leaks("1 MiB") to allow some')
    return parse_size(marker.args[0]) if marker.args else 0


@dataclass(frozen=True)
class Living:
    """Storages owned by Python objects (address, bytes, device; by PyTorch's key), and the allocator's bytes by GPU."""

    storages: dict[int, tuple[int, int, str]]
    allocated: dict[int, int]


def living() -> Living:
    """Live memory after a collection, without cuBLAS's workspaces."""
    from tidemark._holders._scene import live_storages

    gc.collect()
    torch = require_torch("@pytest.mark.no_leaks")
    allocated: dict[int, int] = {}
    if torch.cuda.is_initialized():
        clear_workspaces(torch)
        allocated = {device: torch.cuda.memory_allocated(device) for device in range(torch.cuda.device_count())}
    return Living(live_storages(torch), allocated)


def leaked(before: Living, after: Living, allowed: int) -> str | None:
    """A message if the live bytes have grown by more than allowed, on any device; else ``None``."""
    sums = {device: _sum(after, device) - _sum(before, device) for device in _devices(before) | _devices(after)}
    native = {}
    for device, bytes_now in after.allocated.items():
        grown = bytes_now - before.allocated.get(device, 0)
        name = f"cuda:{device}"
        if grown > allowed and sums.get(name, 0) <= allowed:
            native[name] = grown
    held = {device: grown for device, grown in sums.items() if grown > allowed}
    if not held and not native:
        return None
    lines = [f"The test leaves {bytes_text(grown)} in tensors on {device}" for device, grown in sorted(held.items())]
    lines += [
        f"The test leaves {bytes_text(grown)} on {device} that no Python object owns"
        for device, grown in sorted(native.items())
    ]
    fresh = [key for key, each in after.storages.items() if before.storages.get(key) != each and each[2] in held]
    fresh.sort(key=lambda key: (-after.storages[key][1], after.storages[key]))
    lines += _named(fresh)
    return "\n".join(lines)


def _named(keys: list[int]) -> list[str]:
    from tidemark._holders._scene import explain_storages

    torch: Any = torch_if_loaded()
    found, _, _ = explain_storages(torch, keys[:_NAMED])
    lines = [str(each) for each in found]
    return [*lines, f"({len(keys) - _NAMED} more storages)"] if len(keys) > _NAMED else lines


def _devices(living: Living) -> set[str]:
    return {device for _, _, device in living.storages.values()}


def _sum(living: Living, device: str) -> int:
    return sum(size for _, size, where in living.storages.values() if where == device)
