"""Tensors, their storages, and the objects that share one: views, gradients, saved tensors, NumPy arrays, storage objects."""

from __future__ import annotations

import sys
from bisect import bisect_right
from contextlib import ExitStack
from typing import Any

from . import _safe
from ._edges import Edges
from ._heap import Heap


def undispatched(torch: Any) -> ExitStack:
    """A context in which tensors of subclasses behave as plain ones, so that none of their code runs."""
    stack = ExitStack()
    for name in ("DisableTorchFunctionSubclass", "DisableTorchFunction"):  # the latter until PyTorch 1.13
        guard = getattr(torch._C, name, None)
        if guard is not None:
            stack.enter_context(guard())
            break
    guard = torch._C._DisableTorchDispatch()
    if hasattr(type(guard), "__enter__"):
        stack.enter_context(guard)
    else:  # until PyTorch 1.13: in force while it lives
        stack.callback(id, guard)
    return stack


class Reader:
    """Attributes of tensors read through PyTorch's C++ descriptors, even if a subclass replaces them."""

    def __init__(self, torch: Any) -> None:
        self.base: Any = torch._C.TensorBase if hasattr(torch._C, "TensorBase") else torch._C._TensorBase
        own = _safe.type_dict(self.base)
        self.grad = own["grad"].__get__
        self.grad_fn = own["grad_fn"].__get__
        self.base_of = own["_base"].__get__
        self.is_leaf = own["is_leaf"].__get__
        self.retains_grad = own["retains_grad"].__get__
        self.dtype = own["dtype"].__get__
        self.shape = own["shape"].__get__
        # _storage until PyTorch 1.13
        self._storage = own.get("untyped_storage") or self.base._storage

    def storage(self, tensor: Any) -> Any | None:
        """The untyped storage; ``None`` if there is none (sparse and wrapped tensors) or PyTorch does not show it."""
        try:
            return self._storage(tensor)
        except (RuntimeError, NotImplementedError):
            return None

    def bytes(self, tensor: Any) -> int:
        return int(self.base.numel(tensor) * self.base.element_size(tensor))


class Storage:
    """A live storage: its address, and the objects that own it."""

    def __init__(self, address: int, size: int, device: str) -> None:
        self.address = address
        self.bytes = size
        self.device = device
        self.owners: list[Any] = []


class Storages:
    """All storages owned by Python objects, by the address of PyTorch's structure (which two storages never share)."""

    def __init__(self, torch: Any, heap: Heap, edges: Edges) -> None:
        self._torch = torch
        self.by_key: dict[int, Storage] = {}
        self._seen: set[int] = set()
        self.read = Reader(torch)
        self.tensors = heap.of_types({id(kind) for kind in _safe.subclasses(self.read.base)})
        for tensor in self.tensors:
            self.add(tensor)
        for tensor in self.tensors:
            self._add_gradient_and_base(tensor, edges)
        self._add_storage_objects(heap)

    def add(self, tensor: Any) -> None:
        """A tensor is an owner of its storage."""
        if id(tensor) in self._seen:
            return
        storage = self.read.storage(tensor)
        if storage is None:
            return
        self._seen.add(id(tensor))
        key = storage._cdata
        known = self.by_key.get(key)
        if known is None:
            if storage.device.type == "meta":  # reading a FakeTensor, such as torch.compile keeps, is a warning or an error
                return
            try:
                known = Storage(storage.data_ptr(), int(storage.nbytes()), str(storage.device))
            except RuntimeError:  # a FunctionalTensor, which has no memory
                return
            self.by_key[key] = known
        known.owners.append(tensor)

    def _add_gradient_and_base(self, tensor: Any, edges: Edges) -> None:
        # For other tensors .grad is not set, and reading it prints a warning to stderr.
        if self.read.is_leaf(tensor) or self.read.retains_grad(tensor):
            gradient = self.read.grad(tensor)
            if gradient is not None:
                edges.add(tensor, gradient, ".grad")
                self.add(gradient)
        base = self.read.base_of(tensor)
        if base is not None:
            edges.add(tensor, base, "._base")
            self.add(base)

    def _add_storage_objects(self, heap: Heap) -> None:
        kinds = {id(kind) for kind in _safe.subclasses(self._torch._C.StorageBase)}
        for storage in heap.of_types(kinds):
            known = self.by_key.get(storage._cdata)
            if known is not None:
                known.owners.append(storage)

    def add_arrays(self, arrays: list[Any], edges: Edges) -> None:
        """NumPy arrays: those made by ``.numpy()`` refer to the tensor; those under ``from_numpy`` have its address."""
        by_address = sorted(
            (each.address, each.address + each.bytes, each) for each in self.by_key.values() if each.device == "cpu"
        )
        starts = [start for start, _, _ in by_address]
        for array in arrays:
            base = _safe.attribute(array, "base")
            if base is not None:
                edges.add(array, base, ".base")
            interface = _safe.attribute(array, "__array_interface__")
            at = bisect_right(starts, interface["data"][0]) - 1 if interface else -1
            if at >= 0 and interface and interface["data"][0] < by_address[at][1]:
                by_address[at][2].owners.append(array)

    def containing(self, address: int) -> Storage | None:
        """The storage that contains the byte at an address."""
        for each in self.by_key.values():
            if each.address <= address < each.address + each.bytes:
                return each
        return None

    def forget(self) -> None:
        self.by_key.clear()
        self.tensors.clear()

    def describe(self, owner: Any, storage: Storage) -> tuple[str, str]:
        """An owner's kind and description: ``("view", "Tensor float32 [2, 3], 24 of 4096 bytes")``."""
        name = _safe.type_name(type(owner))
        if _safe.is_kind(owner, self._torch._C.StorageBase):
            return "storage", name
        if not _safe.is_kind(owner, self.read.base):
            shape, dtype = _safe.attribute(owner, "shape"), _safe.attribute(owner, "dtype")
            return "numpy array", f"{name} {dtype} {list(shape or ())}"
        what = f"{name} {str(self.read.dtype(owner)).replace('torch.', '')} {list(self.read.shape(owner))}"
        own = self.read.bytes(owner)
        if own < storage.bytes:
            what += f", {own} of {storage.bytes} bytes"
        if _safe.is_kind(owner, self._torch.nn.Parameter):
            return "parameter", what
        return "view" if self.read.base_of(owner) is not None or own < storage.bytes else "tensor", what


def numpy_kinds() -> list[type]:
    """The types of NumPy's arrays, if NumPy is loaded."""
    numpy = sys.modules.get("numpy")
    return _safe.subclasses(numpy.ndarray) if numpy is not None else []
