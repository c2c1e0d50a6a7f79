"""Shortest chains of references from roots to objects: a breadth-first search upwards, for all objects at once."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Optional

from . import _safe
from ._edges import Edges, Frames
from ._heap import Heap

if TYPE_CHECKING:
    Way = tuple[list[Any], list[Optional[str]]]  # objects, each referring to the next, and the names of these references
    Seed = tuple[int, Any, tuple[Any, Optional[str]]]  # the owner's index, the owner, its referrer and the reference's name

Note = tuple[str, dict[str, object]]  # a template, and its values

_SEEDS = 4  # references to an owner that are followed, for each requested chain
_MOST_VISITED = 100_000
_MOST_IN_CYCLES = 3_000
TOO_MANY = "The search ended after {count} objects: there may be more chains"
TOO_DEEP = "The search ended at {depth} references: there may be longer chains (max_depth)"


@dataclass
class Found:
    """A chain as objects, root first; ``names`` are those unknown to the collector (``None``: call ``name_of``).

    ``kind``: see ``HolderChain``. For a cycle, ``objects[: cycle + 1]`` returns to the first object.
    """

    kind: str
    objects: list[Any]
    names: list[str | None]
    root: str = ""
    cycle: int = 0


class Roots:
    """Roots: modules' namespaces, local variables of running functions, exceptions being handled."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._namespaces: dict[int, str] = {}
        for key, module in sorted(((k, m) for k, m in list(sys.modules.items()) if type(k) is str), key=lambda pair: pair[0]):
            own = _safe.instance_dict(module)
            if own is not None:
                name = own.get("__name__")
                if id(own) not in self._namespaces or key == name:
                    self._namespaces[id(own)] = key
        current = getattr(sys, "_current_exceptions", None)  # CPython 3.10
        raised = current().values() if current else [sys.exc_info()]
        self._handled = {id(each[1] if type(each) is tuple else each) for each in raised}

    def of(self, value: Any) -> tuple[str, str] | None:
        """The kind and name of the root that an object is, else ``None``."""
        name = self._namespaces.get(id(value))
        if name is not None:
            return "global", name
        if type(value) is FrameType and self._frames.is_running(value):
            return "local", ""
        if id(value) in self._handled and _safe.is_kind(value, BaseException):
            return "local", "exception being handled"
        if type(value) is dict and "__builtins__" in value and type(value.get("__name__")) is str:
            return "global", value["__name__"]  # the namespace of exec() or of a module that is not in sys.modules
        return None


class Search:
    """The part of the heap above some objects, found level by level."""

    def __init__(self, heap: Heap, edges: Edges, frames: Frames, excluded: set[int], until: float = math.inf) -> None:
        """``until``, of ``time.perf_counter``: the search for chains stops at that time."""
        self._heap = heap
        self._edges = edges
        self._roots = Roots(frames)
        self._excluded = excluded | frames.ours
        self._parents: dict[int, list[tuple[Any, str | None]]] = {}
        self._until = until
        self.complete = True
        self.notes: list[Note] = []

    def forget(self) -> None:
        self._parents.clear()

    def parents(self, ids: set[int]) -> None:
        """Finds the parents of these objects."""
        missing = {each for each in ids if each not in self._parents}
        if not missing:
            return
        collected = self._heap.parents(missing)
        for child in missing:
            found: list[tuple[Any, str | None]] = [(p, n) for p, n in self._edges.parents(child) if id(p) not in self._excluded]
            known = {id(parent) for parent, _ in found}
            found += [(p, None) for p in collected.get(child, ()) if id(p) not in self._excluded and id(p) not in known]
            self._parents[child] = found

    def chains(self, owners: list[Any], max_chains: int, max_depth: int) -> list[list[Found]]:
        """The shortest chains to each object: first one for each object that refers to it, then others, at least
        ``max_chains``.

        An object without a root above it has one chain, for a cycle or ending in native code; if the search is incomplete, it
        may have none.
        """
        seeds = self._seeds(owners, _SEEDS * max_chains)
        found = self._upwards(seeds, max_chains, max_depth)
        results: list[list[tuple[int, int, Found]]] = [[] for _ in owners]
        for (index, _, _), each in zip(seeds, found):
            results[index] += [(rank, len(chain.objects), chain) for rank, chain in enumerate(each)]
        return [
            [chain for _, _, chain in sorted(each, key=lambda ranked: ranked[:2])]
            or ([self._without_root(owner)] if self.complete else [])
            for owner, each in zip(owners, results)
        ]

    def references(self, item: Any) -> int:
        """The number of objects that refer to one with known parents."""
        return len(self._parents.get(id(item), ()))

    def _seeds(self, owners: list[Any], most: int) -> list[Seed]:
        self.parents({id(owner) for owner in owners})
        return [
            (index, owner, reference) for index, owner in enumerate(owners) for reference in self._parents[id(owner)][:most]
        ]

    def _upwards(self, seeds: list[Seed], max_chains: int, max_depth: int) -> list[list[Found]]:
        """The chains through each reference to an owner. A bit stands for a reference: one search serves all of them."""
        seen: dict[int, int] = {}  # by object: the references to which it leads
        toward: dict[int, list[tuple[int, Any, str | None]]] = {}  # the next object on the way to them
        results: list[list[Found]] = [[] for _ in seeds]
        level: dict[int, tuple[Any, int]] = {}

        def reach(parent: Any, name: str | None, child: Any, bits: int) -> None:
            root = self._roots.of(parent)
            if root is not None:
                for bit in _bits_of(bits):
                    objects, names = self._way(toward, child, seeds[bit][1], bit)
                    results[bit].append(Found(root[0], [parent, *objects], [name, *names], root[1]))
                return
            new = bits & ~seen.get(id(parent), 0)
            if new:
                seen[id(parent)] = seen.get(id(parent), 0) | new
                toward.setdefault(id(parent), []).append((new, child, name))
                level[id(parent)] = (parent, level.get(id(parent), (parent, 0))[1] | new)

        for bit, (_, owner, (parent, name)) in enumerate(seeds):
            reach(parent, name, owner, 1 << bit)
        wanting = (1 << len(seeds)) - 1
        for _ in range(max_depth - 1):
            for bit, each in enumerate(results):
                if len(each) >= max_chains:
                    wanting &= ~(1 << bit)
            current = [(item, bits & wanting) for item, bits in level.values() if bits & wanting]
            level.clear()
            if not current or len(seen) > _MOST_VISITED:
                break
            if time.perf_counter() > self._until:
                self.complete = False
                break
            self.parents({id(item) for item, _ in current})
            for item, bits in current:
                for parent, name in self._parents[id(item)]:
                    reach(parent, name, item, bits)
        if any(bits & wanting for _, bits in level.values()):
            self.notes.append((TOO_DEEP, {"depth": max_depth}))
        if len(seen) > _MOST_VISITED:
            self.notes.append((TOO_MANY, {"count": _MOST_VISITED}))
        return results

    def _way(self, toward: dict[int, list[tuple[int, Any, str | None]]], item: Any, owner: Any, bit: int) -> Way:
        objects: list[Any] = [item]
        names: list[str | None] = []
        while item is not owner:
            _, item, name = next(step for step in toward[id(item)] if step[0] >> bit & 1)
            objects.append(item)
            names.append(name)
        return objects, names

    def _without_root(self, owner: Any) -> Found:
        """A cycle that the object is in or below; else the farthest object above it, which has no known referrer."""
        way: dict[int, tuple[Any, str | None] | None] = {id(owner): None}
        order = [owner]
        for item in order:
            if len(order) > _MOST_IN_CYCLES:
                break
            for parent, name in self._parents.get(id(item), ()):
                if id(parent) not in way:
                    way[id(parent)] = (item, name)
                    order.append(parent)
        for item in order:
            around = self._around(item, way)
            if around is not None:
                objects, names = self._down(item, way)
                return Found("cycle", [*around[0], *objects], [*around[1], *names], cycle=len(around[0]))
        ends = [item for item in order if not self._parents.get(id(item))]
        objects, names = self._down(ends[0] if ends else owner, way)
        return Found("native", objects, names)

    def _down(self, item: Any, way: dict[int, tuple[Any, str | None] | None]) -> Way:
        objects: list[Any] = [item]
        names: list[str | None] = []
        step = way[id(item)]
        while step is not None:
            objects.append(step[0])
            names.append(step[1])
            step = way[id(step[0])]
        return objects, names

    def _around(self, item: Any, within: dict[int, Any]) -> Way | None:
        """The shortest way from an object back to itself, as the objects before it and the references between them."""
        way: dict[int, tuple[Any, str | None]] = {}
        order = [item]
        for each in order:
            for parent, name in self._parents.get(id(each), ()):
                if parent is item:
                    objects, names = [item, each], [name]
                    while each is not item:
                        each, name = way[id(each)]
                        objects.append(each)
                        names.append(name)
                    return objects[:-1], names
                if id(parent) in within and id(parent) not in way:
                    way[id(parent)] = (each, name)
                    order.append(parent)
        return None


def _bits_of(bits: int) -> list[int]:
    return [bit for bit in range(bits.bit_length()) if bits >> bit & 1]
