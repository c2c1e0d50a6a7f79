"""Chains of objects as text: ``model.layers[3].weight``, ``train() at train.py:24: out``, ``step.<locals>.cache['x']``."""

from __future__ import annotations

import re
import sys
from types import CellType, FunctionType
from typing import Any

from . import _names, _safe
from ._search import Found
from ._types import HolderChain, HolderStep

_KEY = re.compile(r"\['([^']*)'\]\Z")
_MODULE_TABLES = ("._parameters", "._buffers", "._modules")


def chain_of(found: Found) -> HolderChain:
    """The chain found by a search, with names."""
    links = [
        (parent, name if name is not None else _names.name_of(parent, child), child)
        for parent, name, child in zip(found.objects, found.names, found.objects[1:])
    ]
    start, merged = _start(found, links)
    if found.kind != "cycle":
        steps = _steps(merged)
        return HolderChain(found.kind, _path(start, steps), steps)
    around, rest = _steps(_merge(links[: found.cycle])), _steps(_merge(links[found.cycle :]))
    closing = f"{_path(start, around)} = {start}"
    return HolderChain("cycle", _path(start, rest), around + rest, closing)


def _start(found: Found, links: list[Any]) -> tuple[str, list[Any]]:
    """The text of the root, and the references from it."""
    first = found.objects[0]
    if found.kind == "global":
        key = _KEY.match(links[0][1])
        links = [(first, f".{key.group(1)}" if key else links[0][1], links[0][2]), *_merge(links[1:])]
        return found.root, links
    if found.kind == "local":
        return found.root, _merge(links)
    return title(first), _merge(links)


def title(value: Any) -> str:
    """The title of an object: functions and classes by name, frames only by their variable, others by their type."""
    if _names.frame_of(value) is not None:
        return ""
    if type(value) is FunctionType:
        return _safe.function_name(value)
    if _safe.is_kind(value, type):
        return _safe.type_name(value)
    return f"<{_safe.type_name(type(value))}>"


def _merge(links: list[Any]) -> list[Any]:
    """Merges references that Python syntax omits: an object's ``__dict__``, a module's tables, closures, autograd nodes."""
    merged: list[Any] = []
    index = 0
    while index < len(links):
        parent, name, child = links[index]
        following = links[index + 1] if index + 1 < len(links) else None
        key = _KEY.match(following[1]) if following else None
        if name == ".__dict__" and key and following:
            links[index + 1] = (parent, f".{key.group(1)}", following[2])
        elif name in _MODULE_TABLES and key and following and _is_torch_module(parent):
            label = key.group(1)
            merged.append((parent, f"[{label}]" if label.isdigit() else f".{label}", following[2]))
            index += 1
        elif name == ".__closure__" and type(parent) is FunctionType and index + 2 < len(links):
            cell = links[index + 1][2]
            variables = zip(parent.__code__.co_freevars, parent.__closure__ or ())
            variable = next((name for name, each in variables if each is cell), "?")
            merged.append((parent, f".<locals>.{variable}", links[index + 2][2]))
            index += 2
        elif type(parent) is CellType and merged:  # named already, by the frame that has the variable
            merged[-1] = (*merged[-1][:2], child)
        else:
            merged.append((parent, name, child))
        index += 1
    return merged


def _is_torch_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and _safe.is_kind(value, torch.nn.Module)


def _steps(links: list[Any]) -> tuple[HolderStep, ...]:
    steps: list[HolderStep] = []
    nodes = 0  # of an autograd graph, since .grad_fn
    for parent, name, child in links:
        kind = _safe.type_name(type(parent))
        if name.startswith(".next_functions["):
            nodes += 1
            continue
        if name in (".tb_next", ".tb_frame", ".gi_frame"):  # to the frame, which is named next
            continue
        if nodes:
            between = " → " if nodes == 1 else f" → ({nodes - 1} node{'s' if nodes > 2 else ''}) → "
            steps.append(HolderStep("autograd graph", f"{between}{kind}"))
            nodes = 0
        elif name.startswith(("._saved_", ".variable")) and steps and steps[-1].name == ".grad_fn":
            steps.append(HolderStep("autograd graph", f" → {kind}"))
        frame = _names.frame_of(parent)
        if frame is not None:
            text = f" → {_names.frame_title(frame)}: {name}"
        else:
            text = name if name != _names.UNNAMED else f" → {title(child)}"
        steps.append(HolderStep(kind, text, _names.place_of(parent)))
    return tuple(steps)


def _path(start: str, steps: tuple[HolderStep, ...]) -> str:
    path = "".join(step.name for step in steps)
    return start + path if start else path[len(" → ") :] if path.startswith(" → ") else path
