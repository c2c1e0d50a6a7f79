"""The modules and tensors of a model, by name, each module once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tidemark.model_analysis.sharded import flat_shapes


class NamedModule(NamedTuple):
    path: str  #: ``""`` for the model itself
    kind: str  #: name of its class
    module: Any


class NamedTensor(NamedTuple):
    name: str
    module: str
    kind: str  #: ``"parameter"``, ``"buffer"``, or ``"packed"``: a weight that optimizers do not see
    tensor: Any
    #: Shape of the whole parameter, if the tensor is a flat piece of it (FSDP); else ``None``.
    whole_shape: tuple[int, ...] | None


def is_module(model: Any) -> bool:
    """Whether it has the tables of a torch.nn.Module. Not ``isinstance``, which a proxy may answer for its target."""
    table = _own(model)
    return "_modules" in table and "_parameters" in table


def modules_of(model: Any) -> list[NamedModule]:
    """The model and every module below it, in the order of ``named_modules()``; a repeated module, or one that refers back to
    itself, under its first path.
    """
    found: list[NamedModule] = []
    seen: set[int] = set()
    pending: list[tuple[str, Any]] = [("", model)]
    while pending:
        path, module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        found.append(NamedModule(path, type(module).__name__, module))
        children = [(f"{path}.{name}" if path else str(name), child) for name, child in _entries(module, "_modules")]
        pending += reversed([(name, child) for name, child in children if is_module(child)])
    return found


def tensors_of(modules: Iterable[NamedModule]) -> Iterator[NamedTensor]:
    """Parameters of all modules, then buffers, with all names of each."""
    modules = list(modules)
    shapes = flat_shapes(modules)
    for kind in ("parameter", "packed", "buffer"):
        for path, _, module in modules:
            entries = _packed_tensors(module) if kind == "packed" else _entries(module, f"_{kind}s")
            for name, tensor in entries:
                dotted = f"{path}.{name}" if path else str(name)
                yield NamedTensor(dotted, path, kind, tensor, shapes.get((id(module), str(name))))


def tensors_by_name(model: Any) -> Iterator[NamedTensor] | None:
    """Tensors of other objects: a state dict, pairs of name and tensor, or an object with ``named_parameters()``."""
    named: Any = getattr(model, "named_parameters", None)
    if isinstance(model, Mapping):
        return _named_pairs(model.items())
    if callable(named):
        named_pairs: Any = named()
        return _named_pairs(named_pairs)
    if isinstance(model, (str, bytes)) or hasattr(model, "element_size"):
        return None  # iterable, but not over tensors with names
    pairs: Any = model
    return _named_pairs(pairs) if isinstance(pairs, Iterable) else None


def _named_pairs(pairs: Iterable[Any]) -> Iterator[NamedTensor]:
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"expected pairs of name and tensor, not {type(pair).__name__}")
        name, tensor = str(pair[0]), pair[1]
        if hasattr(tensor, "element_size"):  # a state dict may contain numbers and other state besides tensors
            yield NamedTensor(name, name.rpartition(".")[0], "parameter", tensor, None)


def _own(thing: Any) -> Mapping[str, Any]:
    """The object's own attributes, without its ``__getattr__``."""
    try:
        table = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return table if isinstance(table, Mapping) else {}


def _entries(module: Any, table: str) -> list[tuple[str, Any]]:
    entries = _own(module).get(table)
    return [(name, entry) for name, entry in entries.items() if entry is not None] if entries is not None else []


def _packed_tensors(module: Any) -> list[tuple[str, Any]]:
    """Weight and bias that torch's quantized layers keep packed, in no table."""
    if not type(module).__module__.startswith(("torch.ao.nn.quantized", "torch.nn.quantized")):
        return []
    if "_packed_params" in _own(module).get("_modules", {}) or not hasattr(module, "_weight_bias"):
        return []  # its child of that name has them
    return [(name, tensor) for name, tensor in zip(("weight", "bias"), module._weight_bias()) if tensor is not None]
