"""Holders of a tensor's memory: the Python objects that own the storage, and their chains of references to a root."""

from __future__ import annotations

from dataclasses import replace

from tidemark._holders._scene import Scene
from tidemark._holders._search import Note
from tidemark._holders._types import HolderChain, Holders, HolderStep, LargestHolders, StorageOwner
from tidemark._language import say
from tidemark._torch import require_torch

__all__ = ["HolderChain", "HolderStep", "Holders", "LargestHolders", "StorageOwner", "holders", "largest_holders"]


def holders(target: object, *, max_chains: int = 5, max_depth: int = 40, lang: str | None = None) -> Holders:
    """Find the Python objects that own a tensor's storage, and the references that keep each of them alive.

    ``target`` is a tensor, a NumPy array on a tensor's memory, a storage, or an address (an ``int``, for example from a leak or
    a recording). Owners are all tensors on the storage: views, gradients, tensors saved by autograd graphs for their backward
    pass, arrays made by ``.numpy()``. Each has at most ``max_chains`` chains, shortest first, of at most ``max_depth``
    references.

    No code of the program runs (no ``repr``, property or hook), and nothing stays alive afterwards. It visits every object of
    the process: some 2 s for a million.

    Raises ``TypeError`` for another kind of target, ``ValueError`` for limits below 1.
    """
    torch = require_torch("tidemark.holders()")
    _check(max_chains=max_chains, max_depth=max_depth)
    with Scene(torch) as scene:
        storage = scene.storage_of(target)
        if storage is None:
            return Holders(None, None, None, (), _texts(scene.notes, lang), scene.objects, scene.seconds(), lang)
        found = scene.explain([storage], max_chains, max_depth, lang)[0]
        return replace(found, notes=_texts(scene.notes, lang))


def largest_holders(
    n: int = 10, device: object = None, *, max_chains: int = 3, max_depth: int = 40, lang: str | None = None
) -> LargestHolders:
    """Find the ``n`` largest live storages of the process and the holders of each: see ``holders``.

    ``device`` (``"cuda:0"``, ``"cuda"`` for all GPUs, a ``torch.device``; default: all devices) selects storages.
    """
    torch = require_torch("tidemark.largest_holders()")
    _check(n=n, max_chains=max_chains, max_depth=max_depth)
    with Scene(torch) as scene:
        wanted = None if device is None else str(device)
        live = [
            each
            for each in scene.storages.by_key.values()
            if each.bytes and (wanted is None or each.device == wanted or each.device.split(":")[0] == wanted)
        ]
        largest = sorted(live, key=lambda each: (-each.bytes, each.device, each.address))[:n]
        found = scene.explain(largest, max_chains, max_depth, lang)
        total = sum(each.bytes for each in live)
        return LargestHolders(tuple(found), total, len(live), _texts(scene.notes, lang), scene.objects, scene.seconds(), lang)


def _texts(notes: list[Note], lang: str | None) -> tuple[str, ...]:
    return tuple(say(template, lang, **values) for template, values in notes)


def _check(**limits: int) -> None:
    for name, value in limits.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
