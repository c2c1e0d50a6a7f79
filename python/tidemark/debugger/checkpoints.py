"""Checkpoints of memory by name, and the memory born and died between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from tidemark._clock import steady_time
from tidemark._language import say
from tidemark._sizes import to_mb
from tidemark.debugger.devices import gpu_memory, host_memory
from tidemark.debugger.live_tensors import LiveTensor, LiveTensors, live_tensors
from tidemark.debugger.result import Result, difference

#: A checkpoint of a large model is a megabyte: programs may take one each step.
_KEPT = 500


class Checkpoint(Result):
    """Memory at one time: ``name``, ``timestamp``, ``memory_usage {gpu_memory, system_memory}``, ``tensors_bytes`` by device.

    ``tensors`` contains the storages held by Python, each with a weak reference: a checkpoint keeps no tensor alive.
    """

    tensors: LiveTensors

    def __init__(self, name: str) -> None:
        self.__dict__["tensors"] = live_tensors()
        usage = Result(gpu_memory=gpu_memory(), system_memory=host_memory())
        by_device = _sums(self.tensors.values(), "device")
        super().__init__(
            name=name,
            timestamp=datetime.now().isoformat(timespec="microseconds"),
            time=steady_time(),
            memory_usage=usage,
            gpu_memory=usage.gpu_memory,
            system_memory=usage.system_memory,
            tensors_bytes=by_device,
            by_category=_sums(self.tensors.values(), "category"),
        )


class Checkpoints:
    """Checkpoints by name; the latest with a name counts, and the latest five hundred are kept."""

    def __init__(self) -> None:
        self.history: list[Checkpoint] = []
        self._by_name: dict[str, Checkpoint] = {}

    def create(self, name: str) -> Checkpoint:
        """Takes one now: some 50 ms, because every object held by Python is visited."""
        taken = Checkpoint(str(name))
        self.history.append(taken)
        self._by_name[taken["name"]] = taken
        for old in self.history[:-_KEPT]:
            if self._by_name.get(old["name"]) is old:
                del self._by_name[old["name"]]
        del self.history[:-_KEPT]
        return taken

    def find(self, which: str | Mapping[str, Any]) -> Checkpoint:
        """The checkpoint with a name, or the checkpoint itself. KeyError lists the existing ones; TypeError for other types."""
        if isinstance(which, Checkpoint):
            return which
        if not isinstance(which, str):
            message = "{what!r} is neither a checkpoint, as it was returned when it was made, nor the name of one"
            raise TypeError(say(message, what=which))
        if which not in self._by_name:
            known = ", ".join(self._by_name) or "none"
            raise KeyError(say("there is no checkpoint {name!r}; there are: {known}", name=which, known=known))
        return self._by_name[which]

    def compare(self, before: str | Mapping[str, Any], after: str | Mapping[str, Any]) -> Result:
        """Compare two checkpoints: see ``tidemark.compare_checkpoints``."""
        return compare(self.find(before), self.find(after))


_CHECKPOINTS = Checkpoints()


def checkpoint(name: str) -> Checkpoint:
    """Store the memory now in use and the existing tensors under a name, for ``compare_checkpoints``.

    Every GPU's counters, the process's resident memory, and the storages held by Python with category and module; no tensor is
    kept alive. Takes some 50 ms.
    """
    return _CHECKPOINTS.create(name)


def compare_checkpoints(before: str | Mapping[str, Any], after: str | Mapping[str, Any]) -> Result:
    """Compare two checkpoints: the memory born and died, given by name or as returned by ``checkpoint()``.

    ``born`` and ``died`` have ``bytes``, ``mb``, ``tensors`` (their number), ``by_category``, ``by_module``, ``by_device``
    (bytes each) and ``largest``; ``gpu_changes`` a row for each device; ``not_seen_change_bytes`` by device the change of
    memory held only by PyTorch. Raises KeyError if there is no checkpoint with a name.
    """
    return _CHECKPOINTS.compare(before, after)


def compare(before: Checkpoint, after: Checkpoint) -> Result:
    """The changes between two checkpoints."""
    born = [tensor for key, tensor in after.tensors.items() if key not in before.tensors]
    died = [tensor for key, tensor in before.tensors.items() if key not in after.tensors]
    changes = gpu_changes(before["gpu_memory"], after["gpu_memory"])
    born_by, died_by = _sums(born, "device"), _sums(died, "device")
    not_seen = {
        row["device"]: row["memory_change_bytes"] - born_by.get(row["device"], 0) + died_by.get(row["device"], 0)
        for row in changes
    }
    process = difference(after["system_memory"]["process_mb"], before["system_memory"]["process_mb"])
    return Result(
        {"from": before["name"], "to": after["name"]},
        seconds=after["time"] - before["time"],
        gpu_changes=changes,
        gpu_memory_diff=[
            Result(
                device_id=row["device_id"],
                allocated_diff_mb=row["memory_change_mb"],
                reserved_diff_mb=row["reserved_change_mb"],
            )
            for row in changes
        ],
        system_change=Result(process_change_mb=process),
        born=_described(born),
        died=_described(died),
        change_bytes=sum(born_by.values()) - sum(died_by.values()),
        not_seen_change_bytes=not_seen,
    )


def gpu_changes(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[Result]:
    """For each GPU the changes of memory (allocated), reserved memory (MB) and utilization (percent of the device)."""
    was = {row["device_id"]: row for row in before}
    return [
        Result(
            device_id=row["device_id"],
            device=row["device"],
            memory_change_bytes=row["allocated_bytes"] - old["allocated_bytes"],
            memory_change_mb=row["allocated_mb"] - old["allocated_mb"],
            reserved_change_mb=row["reserved_mb"] - old["reserved_mb"],
            utilization_change=difference(row["utilization_percent"], old["utilization_percent"]),
            before_mb=old["allocated_mb"],
            after_mb=row["allocated_mb"],
        )
        for row, old in ((row, was[row["device_id"]]) for row in after if row["device_id"] in was)
    ]


def _described(tensors: list[LiveTensor]) -> Result:
    size = sum(tensor.size for tensor in tensors)
    largest = sorted(tensors, key=lambda tensor: tensor.size, reverse=True)[:10]
    rows = [Result({k: v for k, v in tensor._asdict().items() if k != "reference"}) for tensor in largest]
    groups = {f"by_{key}": _sums(tensors, key) for key in ("category", "module", "device")}
    return Result(bytes=size, mb=to_mb(size), tensors=len(tensors), **groups, largest=rows)


def _sums(tensors: Iterable[LiveTensor], key: str) -> dict[str, int]:
    """Bytes by a field, largest first; memory without a module is under ``""``."""
    sums: dict[str, int] = {}
    for tensor in tensors:
        name = getattr(tensor, key) or ""
        sums[name] = sums.get(name, 0) + tensor.size
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))
