"""Who holds a tensor's memory: the Python objects that own the storage, and their chains of references to a root."""

from __future__ import annotations

import gc
import itertools
import sys
import time
from dataclasses import replace
from typing import Any

from tidemark._holders import _safe, _tensors
from tidemark._holders._edges import Edges, Frames
from tidemark._holders._graph import add_graphs
from tidemark._holders._heap import Heap
from tidemark._holders._paths import chain_of
from tidemark._holders._search import Search
from tidemark._holders._types import HolderChain, Holders, HolderStep, LargestHolders, StorageOwner
from tidemark._language import say
from tidemark._torch import require_torch

__all__ = ["HolderChain", "HolderStep", "Holders", "LargestHolders", "StorageOwner", "holders", "largest_holders"]


_FROZEN = "gc.freeze() hides {count} objects: chains through them are not found"


def holders(target: object, *, max_chains: int = 5, max_depth: int = 40, lang: str | None = None) -> Holders:
    """Which Python objects own a tensor's storage, and what keeps each of them alive.

    ``target`` is a tensor, a NumPy array on a tensor's memory, a storage, or an address (an ``int``, such as a leak's or a
    recording's). Owners are all tensors on the storage: views, gradients, what autograd graphs saved for their backward pass,
    arrays made by ``.numpy()``. Each has at most ``max_chains`` chains, shortest first, of ``max_depth`` references at most.

    No code of the program runs (no ``repr``, property or hook), and nothing stays alive afterwards. It looks at every object of
    the process: some 2 s for a million.

    Raises ``TypeError`` for another kind of target, ``ValueError`` for limits below 1.
    """
    torch = require_torch("tidemark.holders()")
    _check(max_chains=max_chains, max_depth=max_depth)
    with _Scene(torch) as scene:
        storage = scene.storage_of(target)
        if storage is None:
            return Holders(None, None, None, (), scene.notes(lang), scene.objects, scene.seconds(), lang)
        found = scene.explain([storage], max_chains, max_depth, lang)[0]
        return replace(found, notes=scene.notes(lang))


def largest_holders(
    n: int = 10, device: object = None, *, max_chains: int = 3, max_depth: int = 40, lang: str | None = None
) -> LargestHolders:
    """The ``n`` largest live storages of the process and who holds each: see ``holders``.

    ``device`` (``"cuda:0"``, ``"cuda"`` for all GPUs, a ``torch.device``; default: all devices) chooses storages.
    """
    torch = require_torch("tidemark.largest_holders()")
    _check(n=n, max_chains=max_chains, max_depth=max_depth)
    with _Scene(torch) as scene:
        wanted = None if device is None else str(device)
        live = [
            each
            for each in scene.storages.by_key.values()
            if each.bytes and (wanted is None or each.device == wanted or each.device.split(":")[0] == wanted)
        ]
        largest = sorted(live, key=lambda each: (-each.bytes, each.device, each.address))[:n]
        found = scene.explain(largest, max_chains, max_depth, lang)
        total = sum(each.bytes for each in live)
        return LargestHolders(tuple(found), total, len(live), scene.notes(lang), scene.objects, scene.seconds(), lang)


def live_storages(torch: Any) -> dict[int, tuple[int, int, str]]:
    """Address, bytes and device of every live storage that Python objects own, by PyTorch's own key of it."""
    with _Scene(torch, links=False) as scene:
        return {key: (each.address, each.bytes, each.device) for key, each in scene.storages.by_key.items()}


def explain_storages(torch: Any, keys: list[int], max_chains: int = 3) -> list[Holders]:
    """Who holds these storages, those that are gone by now left out."""
    with _Scene(torch) as scene:
        live = [scene.storages.by_key[key] for key in keys if key in scene.storages.by_key]
        return scene.explain(live, max_chains, max_depth=40, lang=None)


def _check(**limits: int) -> None:
    for name, value in limits.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")


class _Scene:
    """The process as of one moment. The collector is off meanwhile, and all that was found is let go of at the end."""

    def __init__(self, torch: Any, links: bool = True) -> None:
        """``links``: whether who refers to what is to be known, which takes most of the time."""
        self._torch = torch
        self._links = links
        self._collecting = gc.isenabled()
        self._started = time.perf_counter()

    def __enter__(self) -> _Scene:
        gc.disable()
        try:
            kinds = _tensors.numpy_kinds()
            self._heap = Heap()
            if self._links:
                self._heap.link(kinds)
            self.objects = len(self._heap.objects)
            self._edges = Edges()
            self._frames = Frames(self._edges)
            self._guard = _tensors.undispatched(self._torch)
            self.storages = _tensors.Storages(self._torch, self._heap, self._edges)
            self._notes = add_graphs(self.storages, self._edges)
            if gc.get_freeze_count():
                self._notes.append((_FROZEN, {"count": gc.get_freeze_count()}))
            wanted = {id(kind) for kind in kinds}
            arrays = [each for each in self._heap.found_untracked.values() if id(type(each)) in wanted]
            self.storages.add_arrays(arrays, self._edges)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        guard = getattr(self, "_guard", None)
        if guard is not None:
            guard.close()
        for name in ("_heap", "_edges", "_frames", "storages", "_search"):
            part = self.__dict__.pop(name, None)
            if part is not None:
                part.forget()
        if self._collecting:
            gc.enable()

    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def notes(self, lang: str | None) -> tuple[str, ...]:
        return tuple(say(template, lang, **values) for template, values in self._notes)

    def storage_of(self, target: object) -> _tensors.Storage | None:
        if type(target) is int:
            return self.storages.containing(target)
        if _safe.is_kind(target, self.storages.read.base):
            storage = self.storages.read.storage(target)
            return self.storages.by_key.get(storage._cdata) if storage is not None else None
        if _safe.is_kind(target, self._torch._C.StorageBase):
            return self.storages.by_key.get(target._cdata)  # type: ignore[attr-defined]
        numpy = sys.modules.get("numpy")
        if numpy is not None and _safe.is_kind(target, numpy.ndarray):
            interface = _safe.attribute(target, "__array_interface__")
            return self.storages.containing(interface["data"][0]) if interface else None
        kind = _safe.type_name(type(target))
        raise TypeError(f"holders() takes a tensor, a storage, a NumPy array or an address (int), not {kind}")

    def explain(self, wanted: list[_tensors.Storage], max_chains: int, max_depth: int, lang: str | None) -> list[Holders]:
        search = self._search = Search(self._heap, self._edges, self._frames, {id(self.__dict__), id(self)})
        owners = [(index, owner) for index, each in enumerate(wanted) for owner in each.owners]
        found = search.chains([owner for _, owner in owners], max_chains, max_depth)
        self._notes += search.notes
        self._heap.forget()  # it has the dicts of frames' variables, which naming is to release
        grouped: list[list[StorageOwner]] = [[] for _ in wanted]
        for (index, owner), chains in zip(owners, found):
            kind, what = self.storages.describe(owner, wanted[index])
            if kind == "storage" and chains[0].kind == "native":
                continue  # PyTorch's own object, which it makes for each storage that is looked at
            named = {chain.path: chain for chain in map(chain_of, chains)}
            chosen = itertools.islice(named.values(), max_chains)
            ordered = sorted(chosen, key=lambda chain: (len(chain.steps), chain.path))
            ends = {chain.steps[-1].name.partition("[")[0] for chain in ordered if chain.steps}
            if ".grad" in ends:
                kind = "gradient"
            elif ends and all(end.startswith("._saved_") for end in ends):
                kind = "saved tensor"
            grouped[index].append(StorageOwner(kind, what, tuple(ordered), search.references(owner)))
        return [
            Holders(each.address, each.bytes, each.device, _in_order(owned), (), self.objects, self.seconds(), lang)
            for each, owned in zip(wanted, grouped)
        ]


def _in_order(owners: list[StorageOwner]) -> tuple[StorageOwner, ...]:
    return tuple(sorted(owners, key=lambda owner: (len(owner.chains[0].steps), owner.chains[0].path, owner.what)))
