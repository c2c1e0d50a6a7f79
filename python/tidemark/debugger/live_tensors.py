"""The tensors that Python holds now: each storage once, with its bytes, category and module.

Found by walking the objects known to Python's garbage collector. Tensors held only by PyTorch, such as activations saved for
the backward pass, are not among them; on a GPU the allocator's counter gives their total.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from tidemark._torch import storage_of, torch_if_loaded


class LiveTensor(NamedTuple):
    """One storage and its known properties."""

    size: int  #: bytes of the storage
    device: str  #: such as "cpu" or "cuda:0"
    category: str  #: parameter, buffer, gradient, optimizer_state or unknown
    module: str | None  #: dotted path of the module that it belongs to
    name: str | None  #: of the parameter or buffer
    shape: tuple[int, ...]
    dtype: str
    reference: Any  #: weak, and keeps the storage's address from being reused


#: Address of the storage's object -> the storage.
LiveTensors = dict[int, LiveTensor]


class _Owner(NamedTuple):
    category: str
    module: str | None
    name: str | None


_NOBODY = _Owner("unknown", None, None)


def live_tensors() -> LiveTensors:
    """Every storage held by a tensor object; empty if the program has not imported torch."""
    torch: Any = torch_if_loaded()
    if torch is None:
        return {}
    weak_reference: Any = import_module("torch.multiprocessing.reductions").StorageWeakRef

    found: LiveTensors = {}
    with torch._C.DisableTorchFunction():  # subclasses of Tensor would run code of theirs
        kinds = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
        objects = [thing for thing in gc.get_objects() if issubclass(type(thing), kinds)]
        tensors = [thing for thing in objects if issubclass(type(thing), torch.Tensor)]
        owners = _owners(torch, objects)
        gradients = [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.requires_grad and tensor.grad is not None]
        for tensor in [*tensors, *gradients]:
            storage = storage_of(tensor)
            if storage is None or not storage.nbytes() or storage.device.type == "meta" or storage._cdata in found:
                continue
            owner = owners.get(storage._cdata, _NOBODY)
            found[storage._cdata] = LiveTensor(
                storage.nbytes(), str(storage.device), *owner, tuple(tensor.shape), str(tensor.dtype), weak_reference(storage)
            )
    return found


def owned_bytes(model: Any, optimizer: Any | None = None) -> dict[str, int]:
    """Bytes of a model's parameters, buffers and gradients and its optimizer's state by category, shared storages once."""
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    for tensor, owner in [*_of_module(model, ""), *(_of_optimizer(optimizer, {}) if optimizer is not None else [])]:
        storage = storage_of(tensor)
        if storage is None or storage._cdata in seen or storage.device.type == "meta":
            continue
        seen.add(storage._cdata)
        sizes[owner.category] = sizes.get(owner.category, 0) + storage.nbytes()
    return sizes


def _owners(torch: Any, objects: list[Any]) -> dict[int, _Owner]:
    """Address of a storage -> its owner, from the modules and optimizers among the objects."""
    modules = [thing for thing in objects if issubclass(type(thing), torch.nn.Module)]
    children = {id(child) for module in modules for child in module.__dict__.get("_modules", {}).values()}
    roots = [module for module in modules if id(module) not in children and next(module.parameters(), None) is not None]
    owners: dict[int, _Owner] = {}
    by_parameter: dict[int, _Owner] = {}
    for root in roots:
        # Several models: the class in front distinguishes their modules.
        prefix = f"{type(root).__name__}." if len(roots) > 1 else ""
        for tensor, owner in _of_module(root, prefix):
            storage = storage_of(tensor)
            if storage is not None:
                owners.setdefault(storage._cdata, owner)
            by_parameter.setdefault(id(tensor), owner)
    for optimizer in (thing for thing in objects if issubclass(type(thing), torch.optim.Optimizer)):
        for tensor, owner in _of_optimizer(optimizer, by_parameter):
            storage = storage_of(tensor)
            if storage is not None:
                owners.setdefault(storage._cdata, owner)
    return owners


def _of_module(root: Any, prefix: str) -> Iterator[tuple[Any, _Owner]]:
    for name, parameter in root.named_parameters():
        path = prefix + name
        module = path.rpartition(".")[0]
        yield parameter, _Owner("parameter", module, path)
        if parameter.grad is not None:
            yield parameter.grad, _Owner("gradient", module, path)
    for name, buffer in root.named_buffers():
        path = prefix + name
        yield buffer, _Owner("buffer", path.rpartition(".")[0], path)


def _of_optimizer(optimizer: Any, by_parameter: dict[int, _Owner]) -> Iterator[tuple[Any, _Owner]]:
    for parameter, state in list(optimizer.state.items()):
        owner = by_parameter.get(id(parameter), _NOBODY)
        values = state.values() if isinstance(state, dict) else ()
        for value in values:
            if hasattr(value, "element_size"):
                yield value, _Owner("optimizer_state", owner.module, owner.name)
