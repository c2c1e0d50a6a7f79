"""Result types of ``holders`` and ``largest_holders``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class HolderStep:
    """One reference of a chain: from an object of ``type`` to the next one, or to the owner.

    ``name`` is the reference: ``.weight``, ``[12]``, ``['key']``. ``place`` is the file and line of a function, a frame or a
    generator, else ``None``.
    """

    type: str
    name: str
    place: str | None = None


@dataclass(frozen=True)
class HolderChain:
    """The references from a root to an owner.

    ``kind``: ``"global"`` (a module's variable), ``"local"`` (a variable of a running function), ``"cycle"`` (no root: only the
    cycle collector frees it), ``"native"`` (no root and no cycle: native code or a temporary holds the first object). ``path``
    is the chain in Python syntax; ``cycle``, for cycles, the references that close it.
    """

    kind: str
    path: str
    steps: tuple[HolderStep, ...]
    cycle: str | None = None


@dataclass(frozen=True)
class StorageOwner:
    """An object that keeps the storage alive.

    ``kind``: ``"parameter"``, ``"tensor"``, ``"view"``, ``"gradient"``, ``"saved tensor"`` (kept by a node of an autograd graph
    for its backward pass), ``"numpy array"`` or ``"storage"``. ``what`` contains its type, dtype and shape. ``references`` is
    the number of objects that refer to it; there is a chain for each, up to the limit.
    """

    kind: str
    what: str
    chains: tuple[HolderChain, ...]
    references: int = 0


@dataclass(frozen=True)
class Holders:
    """The holders of a storage. ``address``, ``bytes`` and ``device`` are ``None`` if no live object has the storage.

    ``notes`` contains missing information and the reason if the search ended early; ``objects`` is the number of Python objects
    visited, in ``seconds``.
    """

    address: int | None
    bytes: int | None
    device: str | None
    owners: tuple[StorageOwner, ...]
    notes: tuple[str, ...] = ()
    objects: int = 0
    seconds: float = 0.0
    lang: str | None = field(default=None, repr=False)

    @property
    def chains(self) -> tuple[HolderChain, ...]:
        """All chains, shortest first."""
        found = [chain for owner in self.owners for chain in owner.chains]
        return tuple(sorted(found, key=lambda chain: (len(chain.steps), chain.path)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: the fields by name, sizes in bytes."""
        found = asdict(self)
        del found["lang"]
        return found

    def __str__(self) -> str:
        from tidemark._holders._render import text

        return text(self)

    def _repr_html_(self) -> str:
        from tidemark._holders._render import html

        return html([self])


@dataclass(frozen=True)
class LargestHolders:
    """The largest live storages of the process, largest first, each with its holders.

    ``bytes`` is the sum over all live storages owned by Python objects (on the device, if one was chosen), ``storages`` their
    number. It is a sequence of ``Holders``.
    """

    largest: tuple[Holders, ...]
    bytes: int
    storages: int
    notes: tuple[str, ...] = ()
    objects: int = 0
    seconds: float = 0.0
    lang: str | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.largest)

    def __iter__(self) -> Iterator[Holders]:
        return iter(self.largest)

    def __getitem__(self, index: int) -> Holders:
        return self.largest[index]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: the fields by name, sizes in bytes."""
        return {
            "bytes": self.bytes,
            "storages": self.storages,
            "notes": list(self.notes),
            "objects": self.objects,
            "seconds": self.seconds,
            "largest": [each.to_dict() for each in self.largest],
        }

    def __str__(self) -> str:
        from tidemark._holders._render import largest_text

        return largest_text(self)

    def _repr_html_(self) -> str:
        from tidemark._holders._render import html

        return html(self.largest)
