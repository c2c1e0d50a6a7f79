"""Shapes from FSDP 1 of the parameters that it flattened: the pieces in a model have no shape or size of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def flat_shapes(modules: Iterable[Any]) -> dict[tuple[int, str], tuple[int, ...]]:
    """Shape of the whole parameter by (id of its module, name there); for a flat parameter itself, of everything in it, without
    padding.
    """
    shapes: dict[tuple[int, str], tuple[int, ...]] = {}
    for _, _, module in modules:
        handle = getattr(module, "_handle", None) if "FullyShardedDataParallel" in type(module).__name__ else None
        flat = getattr(handle, "flat_param", None)
        if flat is None:
            continue
        for info, shape in zip(flat._param_infos, flat._shapes):
            shapes[id(info.module), info.param_name] = tuple(shape)
        holder = getattr(handle, "_fully_sharded_module", None)
        shapes[id(holder), "_flat_param"] = (sum(flat._numels),)
    return shapes
