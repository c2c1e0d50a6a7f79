"""All objects known to CPython's cycle collector and their references, at one moment.

One pass lists the references of all objects in two flat arrays, 8 bytes a reference. The referrers of some objects are then
found by a scan of the array at the speed of C, once for each level of the search: ``gc.get_referrers`` would follow every
reference again for every level, and misses objects that the collector does not track. A dict of all parents takes seven times
as long.
"""

from __future__ import annotations

import gc
import math
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from itertools import compress, count
from typing import Any

_BETWEEN_LOOKS = 4096  # objects between two readings of the clock


class Heap:
    """Strong references to all objects: they keep everything alive, so it must not outlive the search."""

    def __init__(self) -> None:
        self.objects: list[Any] = gc.get_objects()
        self.found_untracked: dict[int, Any] = {}
        self._targets = array("Q")  # the id of each object referred to, by referring object
        self._ends = array("Q")  # for each object, the end of its references in _targets

    def link(self, untracked_kinds: Iterable[type], until: float = math.inf) -> bool:
        """Lists the references. False if it was not done by ``until``, of ``time.perf_counter``: then none are known.

        ``untracked_kinds``: types that the collector does not track but that are needed, such as NumPy's arrays.
        """
        wanted = {id(kind) for kind in untracked_kinds}
        containers = {id(kind) for kind in (tuple, dict)} if wanted else set()
        looked_at = wanted | containers
        extend, end = self._targets.extend, self._ends.append
        references = gc.get_referents
        total = 0
        for index, item in enumerate(self.objects):
            if not index % _BETWEEN_LOOKS and time.perf_counter() > until:
                self._targets, self._ends = array("Q"), array("Q")
                return False
            referred = references(item)
            extend(map(id, referred))
            total += len(referred)
            end(total)
            if wanted and not looked_at.isdisjoint(map(id, map(type, referred))):
                self._look_into(referred, wanted, containers)
        # Containers of only untracked objects are untracked themselves, and so not among gc's objects: append theirs.
        for item in [each for key, each in self.found_untracked.items() if id(type(each)) in containers]:
            self.objects.append(item)
            referred = references(item)
            extend(map(id, referred))
            total += len(referred)
            end(total)
        return True

    def _look_into(self, referred: list[Any], wanted: set[int], containers: set[int]) -> None:
        tracked = gc.is_tracked
        pending = [referred]
        while pending:
            for each in pending.pop():
                kind = id(type(each))
                container = kind in containers
                if (kind in wanted or (container and not tracked(each))) and id(each) not in self.found_untracked:
                    self.found_untracked[id(each)] = each
                    if container:
                        pending.append(gc.get_referents(each))

    def parents(self, wanted: set[int]) -> dict[int, list[Any]]:
        """By id of an object: the objects that refer to it, in the order of their age. Instances are not parents of their
        class.
        """
        found: dict[int, list[Any]] = {}
        for position in compress(count(), map(wanted.__contains__, self._targets)):
            parent = self.objects[bisect_right(self._ends, position)]
            child = self._targets[position]
            if id(type(parent)) != child:
                same = found.setdefault(child, [])
                if not same or same[-1] is not parent:
                    same.append(parent)
        return found

    def forget(self) -> None:
        """Releases everything: the list contains this object itself, a cycle that would live until the next collection."""
        self.objects.clear()
        self.found_untracked.clear()

    def of_types(self, types: set[int]) -> list[Any]:
        """Objects of these types, given by id."""
        return [each for each in self.objects if id(type(each)) in types]
