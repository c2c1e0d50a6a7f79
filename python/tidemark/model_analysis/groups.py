"""Bytes and parameters by module, layer, dtype, device and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidemark.model_analysis.tensors import TensorFacts


@dataclass
class Group:
    """Parameters with a common property."""

    name: str
    tensors: int = 0
    parameters: int = 0
    trainable_parameters: int = 0
    bytes: int = 0

    def add(self, tensor: TensorFacts) -> None:
        self.tensors += 1
        self.parameters += tensor.elements
        self.trainable_parameters += tensor.elements if tensor.trainable else 0
        self.bytes += tensor.bytes


@dataclass
class ModuleNode:
    """A module with its own memory and, in ``total``, the memory of its subtree."""

    path: str  #: ``""`` for the model itself
    kind: str  #: name of its class; ``""`` if only names are known, as in a state dict
    own: Group
    total: Group
    buffer_bytes: int = 0  #: in its subtree
    children: list[ModuleNode] = field(default_factory=list)


@dataclass(frozen=True)
class RepeatedBlocks:
    """Blocks of a list that all have the same size: ``model.layers.0`` to ``model.layers.31``."""

    #: Path of the first one.
    first: str
    last: str
    count: int
    #: Number in each block.
    parameters: int
    bytes: int


def group_by(tensors: Iterable[TensorFacts], name_of: Callable[[TensorFacts], str]) -> list[Group]:
    """In the order in which the names appear."""
    groups: dict[str, Group] = {}
    for tensor in tensors:
        name = name_of(tensor)
        groups.setdefault(name, Group(name)).add(tensor)
    return list(groups.values())


def layer_of(module: str) -> str:
    """The module up to the first number in its path, which names a layer: ``model.layers.3``; without one, the module."""
    parts = module.split(".")
    numbers = [index for index, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbers[0] + 1]) if numbers else module


def shape_text(shape: Sequence[int]) -> str:
    """``"[4096, 11008]"``"""
    return f"[{', '.join(str(size) for size in shape)}]"


def repeated_blocks(layers: Sequence[Group]) -> list[RepeatedBlocks]:
    """Runs of at least two layers of one list with the same size."""
    found: list[RepeatedBlocks] = []
    for layer in layers:
        stem, _, number = layer.name.rpartition(".")
        before = found[-1] if found else None
        if before is not None and number.isdigit():
            last_stem, _, last_number = before.last.rpartition(".")
            alike = (before.parameters, before.bytes) == (layer.parameters, layer.bytes)
            if alike and last_stem == stem and last_number.isdigit() and int(number) == int(last_number) + 1:
                found[-1] = RepeatedBlocks(before.first, layer.name, before.count + 1, layer.parameters, layer.bytes)
                continue
        found.append(RepeatedBlocks(layer.name, layer.name, 1, layer.parameters, layer.bytes))
    return [blocks for blocks in found if blocks.count > 1]


def module_tree(tensors: Iterable[TensorFacts], kinds: dict[str, str]) -> ModuleNode:
    """The tree of modules, with subtotals; ``kinds`` is the class of each path. Modules without a tensor below are left out."""
    root = ModuleNode("", kinds.get("", ""), Group(""), Group(""))
    nodes = {"": root}
    for tensor in tensors:
        chain = _chain(nodes, kinds, tensor.module)
        if tensor.kind == "buffer":
            for node in chain:
                node.buffer_bytes += tensor.bytes
            continue
        chain[-1].own.add(tensor)
        for node in chain:
            node.total.add(tensor)
    return root


def _chain(nodes: dict[str, ModuleNode], kinds: dict[str, str], path: str) -> list[ModuleNode]:
    """The nodes from the root to the path; missing ones are created."""
    chain = [nodes[""]]
    parts = path.split(".") if path else []
    for length in range(1, len(parts) + 1):
        here = ".".join(parts[:length])
        if here not in nodes:
            nodes[here] = ModuleNode(here, kinds.get(here, ""), Group(here), Group(here))
            chain[-1].children.append(nodes[here])
        chain.append(nodes[here])
    return chain
