"""Bytes of tensors; bytes shared by several tensors count once."""

from __future__ import annotations

from typing import Any

from tidemark._torch import byte_length, storage_of


class StorageTally:
    """The counted bytes of each storage. The tensors must outlive it, because storages are identified by address."""

    def __init__(self) -> None:
        self._claims: dict[int, _Claims] = {}

    def take(self, tensor: Any, name: str) -> tuple[int, str | None]:
        """Bytes of a plain tensor that were not counted before, and the name of the first tensor that has some of its other
        bytes.
        """
        storage = storage_of(tensor)
        length = byte_length(tensor)
        if storage is None:  # no visible storage to share, but one object is one tensor
            return self._claims.setdefault(id(tensor), _Claims()).take(0, length, length, name)
        claims = self._claims.setdefault(int(storage._cdata), _Claims())
        begin = int(tensor.storage_offset()) * int(tensor.element_size())
        reach = _reach(tensor)
        if reach == length:
            return claims.take(begin, begin + length, int(storage.nbytes()), name)
        return claims.take_somewhere(min(length, reach), int(storage.nbytes()), name)


class _Claims:
    """The counted parts of one storage."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, str]] = []  # disjoint
        self._counted = 0

    def take(self, begin: int, end: int, size: int, name: str) -> tuple[int, str | None]:
        """Counts bytes ``begin`` to ``end`` of the storage of ``size`` bytes."""
        owner: str | None = None
        pieces = [(begin, end)] if begin < end else []
        for taken_begin, taken_end, taken_by in self._ranges:
            left = []
            for piece_begin, piece_end in pieces:
                if taken_end <= piece_begin or piece_end <= taken_begin:
                    left.append((piece_begin, piece_end))
                    continue
                owner = owner or taken_by
                left += [(piece_begin, taken_begin)] if piece_begin < taken_begin else []
                left += [(taken_end, piece_end)] if taken_end < piece_end else []
            pieces = left
        self._ranges += [(piece_begin, piece_end, name) for piece_begin, piece_end in pieces]
        return self._count(sum(piece_end - piece_begin for piece_begin, piece_end in pieces), size), owner

    def take_somewhere(self, length: int, size: int, name: str) -> tuple[int, str | None]:
        """The same for a view with gaps, such as columns of a matrix, whose ranges are not kept: counts up to the remaining
        bytes.
        """
        new = self._count(length, size)
        owner = self._ranges[0][2] if self._ranges and new < length else None
        if owner is None:
            self._ranges.append((0, 0, name))  # a name that has the storage, covers nothing
        return new, owner

    def _count(self, length: int, size: int) -> int:
        new = max(0, min(length, size - self._counted))
        self._counted += new
        return new


def _reach(tensor: Any) -> int:
    """Bytes from the first element to the end of the last: more than its elements take in a view with gaps, less in an expanded
    tensor.
    """
    if tensor.numel() == 0:
        return 0
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return (int(steps) + 1) * int(tensor.element_size())
