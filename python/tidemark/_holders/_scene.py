"""The process at one moment: its objects, storages and references, and the holders of storages."""

from __future__ import annotations

import gc
import itertools
import math
import sys
import time
from typing import Any

from . import _safe, _tensors
from ._edges import Edges, Frames
from ._graph import add_graphs
from ._heap import Heap
from ._paths import chain_of
from ._search import Note, Search
from ._types import Holders, StorageOwner

_FROZEN = "gc.freeze() hides {count} objects: chains through them are not found"


def live_storages(torch: Any) -> dict[int, tuple[int, int, str]]:
    """Address, bytes and device of every live storage owned by Python objects, by PyTorch's own key."""
    with Scene(torch, links=False) as scene:
        return {key: (each.address, each.bytes, each.device) for key, each in scene.storages.by_key.items()}


def explain_storages(
    torch: Any, keys: list[int], max_chains: int = 3, seconds: float | None = None
) -> tuple[list[Holders], bool, list[Note]]:
    """The holders of these storages, without storages that are gone by now.

    Also returns whether the search was complete: after ``seconds`` it stops looking for chains; and notes on missing
    information.
    """
    with Scene(torch, seconds=seconds) as scene:
        live = [scene.storages.by_key[key] for key in keys if key in scene.storages.by_key]
        return scene.explain(live, max_chains, max_depth=40, lang=None), scene.complete, scene.notes


class Scene:
    """The process at one moment. The collector is off meanwhile, and everything found is released at the end."""

    def __init__(self, torch: Any, links: bool = True, seconds: float | None = None) -> None:
        """``links``: whether to find references, which takes most of the time; for at most ``seconds``."""
        self._torch = torch
        self._links = links
        self._collecting = gc.isenabled()
        self._started = time.perf_counter()
        self._until = math.inf if seconds is None else self._started + seconds
        self.complete = True
        self.notes: list[Note] = []

    def __enter__(self) -> Scene:
        gc.disable()
        try:
            kinds = _tensors.numpy_kinds()
            self._heap = Heap()
            if self._links:
                self.complete = self._heap.link(kinds, self._until)
            self.objects = len(self._heap.objects)
            self._edges = Edges()
            self._frames = Frames(self._edges)
            self._guard = _tensors.undispatched(self._torch)
            self.storages = _tensors.Storages(self._torch, self._heap, self._edges)
            self.notes += add_graphs(self.storages, self._edges)
            if gc.get_freeze_count():
                self.notes.append((_FROZEN, {"count": gc.get_freeze_count()}))
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
        search = self._search = Search(self._heap, self._edges, self._frames, {id(self.__dict__), id(self)}, self._until)
        owners = [(index, owner) for index, each in enumerate(wanted) for owner in each.owners]
        found = search.chains([owner for _, owner in owners], max_chains, max_depth) if self.complete else [[]] * len(owners)
        self.complete = self.complete and search.complete
        self.notes += search.notes
        self._heap.forget()  # it has the dicts of frames' variables, which must be released after naming
        grouped: list[list[StorageOwner]] = [[] for _ in wanted]
        for (index, owner), chains in zip(owners, found):
            kind, what = self.storages.describe(owner, wanted[index])
            if kind == "storage" and (not chains or chains[0].kind == "native"):
                continue  # PyTorch's own object, created for each storage that is inspected
            if chains and time.perf_counter() > self._until:  # naming a reference may read a whole list
                self.complete, chains = False, []
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
    def place(owner: StorageOwner) -> tuple[bool, int, str, str]:
        first = owner.chains[0] if owner.chains else None
        return first is None, len(first.steps) if first else 0, first.path if first else "", owner.what

    return tuple(sorted(owners, key=place))
