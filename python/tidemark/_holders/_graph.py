"""Autograd graphs: the tensors that each node keeps for its backward pass, and the holders of the node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _safe
from ._edges import Edges
from ._tensors import Storages

_MOST_NODES = 200_000
_RAW = "_raw_saved_"
UNREADABLE = "This PyTorch cannot show the tensors that autograd graphs keep without running hooks: they are not listed"
HOOKED = "{count} saved tensors are packed by hooks (activation checkpointing, offloading), which are not run: not listed"
MANY_NODES = "Autograd graphs have more than {count} nodes: the rest of them was not looked at"


def add_graphs(storages: Storages, edges: Edges) -> list[tuple[str, dict[str, object]]]:
    """Adds the references tensor -> node -> node -> saved tensor of all graphs that a tensor ends in. Returns notes."""
    nodes: dict[int, Any] = {}
    order: list[Any] = []

    def visit(node: Any) -> None:
        if id(node) not in nodes:
            nodes[id(node)] = node
            order.append(node)

    for tensor in storages.tensors:
        node = storages.read.grad_fn(tensor)
        if node is not None:
            edges.add(tensor, node, ".grad_fn")
            visit(node)
    hooked, unreadable = 0, False
    for node in order:  # grows during the loop
        if len(order) >= _MOST_NODES:
            break
        for index, (following, _) in enumerate(node.next_functions):
            if following is not None:
                edges.add(node, following, f".next_functions[{index}]")
                visit(following)
        variable = _safe.attribute(node, "variable")  # AccumulateGrad's leaf
        if variable is not None:
            edges.add(node, variable, ".variable")
        for name, saved in _saved(node):
            if not hasattr(type(saved), "unpack_hook"):
                unreadable = True
            elif saved.unpack_hook is not None:
                hooked += 1
            else:
                tensor = saved.data
                if tensor is not None:
                    edges.add(node, tensor, name)
                    storages.add(tensor)
    notes: list[tuple[str, dict[str, object]]] = []
    if unreadable:
        notes.append((UNREADABLE, {}))
    if hooked:
        notes.append((HOOKED, {"count": hooked}))
    if len(order) >= _MOST_NODES:
        notes.append((MANY_NODES, {"count": _MOST_NODES}))
    return notes


def _saved(node: Any) -> Iterator[tuple[str, Any]]:
    """The variables that a node keeps, still packed, and the names under which PyTorch unpacks them."""
    for base in _safe.mro(type(node)):
        for name, member in list(_safe.type_dict(base).items()):
            if name.startswith(_RAW):
                try:
                    found = member.__get__(node)
                except RuntimeError:  # freed by the backward pass
                    continue
                if type(found) is tuple or type(found) is list:
                    yield from ((f"._saved_{name[len(_RAW) :]}[{index}]", each) for index, each in enumerate(found))
                elif found is not None:
                    yield f"._saved_{name[len(_RAW) :]}", found
