"""The reference from one object to another in Python syntax: ``.weight``, ``[12]``, ``['key']``, a local variable."""

from __future__ import annotations

from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any

from . import _safe

_FRAMES_OF = {GeneratorType: "gi_frame", CoroutineType: "cr_frame", AsyncGeneratorType: "ag_frame"}
_C_ATTRIBUTES = ("__traceback__", "__context__", "__cause__", "args", "tb_frame", "tb_next", "__self__", "__wrapped__")
UNNAMED = "?"


def name_of(parent: Any, child: Any) -> str:
    """The name of a reference found by the collector; ``UNNAMED`` if the parent does not show it."""
    if _safe.is_kind(parent, dict):
        return _in_dict(parent, child) or _in_object(parent, child)
    if _safe.is_kind(parent, list, tuple):
        return _in_sequence(parent, child) or _in_object(parent, child)
    if type(parent) is CellType:
        return ".cell_contents"
    if type(parent) is FunctionType:
        return _in_function(parent, child)
    frame = frame_of(parent)
    if frame is not None:
        if child is frame:  # a generator's frame: a separate object until CPython 3.10
            return ".gi_frame"
        return _in_locals(frame, child) or (".f_back" if frame.f_back is child else UNNAMED)
    return _in_object(parent, child)


def place_of(value: Any) -> str | None:
    """The file and line of a function, a frame or a generator."""
    if type(value) is FunctionType:
        return _safe.place(value.__code__)
    if type(value) is TracebackType:
        return _safe.place(value.tb_frame.f_code, value.tb_lineno)
    frame = frame_of(value)
    return None if frame is None else _safe.place(frame.f_code, frame.f_lineno)


def frame_of(value: Any) -> FrameType | None:
    """The frame itself, or the frame of a generator or coroutine that has not ended."""
    found = value if type(value) is FrameType else _safe.attribute(value, _FRAMES_OF.get(type(value), ""))
    return found if type(found) is FrameType else None


def frame_title(frame: FrameType) -> str:
    """``train() at train.py:24``."""
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)  # CPython 3.11
    return f"{name}() at {_safe.place(code, frame.f_lineno)}"


def _in_dict(parent: dict[Any, Any], child: Any) -> str:
    for key, value in _safe.items(parent):
        if value is child:
            return f"[{_safe.key_text(key)}]"
    for index, key in enumerate(_safe.items(parent)):
        if key[0] is child:
            return f".keys()[{index}]"
    return ""


def _in_sequence(parent: Any, child: Any) -> str:
    values = list.__iter__(parent) if _safe.is_kind(parent, list) else tuple.__iter__(parent)
    return next((f"[{index}]" for index, value in enumerate(values) if value is child), "")


def _in_function(parent: Any, child: Any) -> str:
    if child is parent.__closure__:
        return ".__closure__"
    if child is parent.__defaults__:
        return ".__defaults__"
    if child is parent.__kwdefaults__:
        return ".__kwdefaults__"
    return _in_object(parent, child)


def _in_locals(frame: FrameType, child: Any) -> str:
    if type(child) is CellType:  # a variable shared with inner functions
        try:
            child = child.cell_contents
        except ValueError:  # not set yet
            return ""
    found = next((name for name, value in _safe.locals_of(frame) if value is child), "")
    _safe.release_locals(frame)
    return found


def _in_object(parent: Any, child: Any) -> str:
    if _safe.is_kind(parent, type) and type(child) is dict:
        return ".__dict__"
    own = _safe.instance_dict(parent)
    if own is not None:
        if own is child:
            return ".__dict__"
        for key, value in _safe.items(own):
            if value is child:
                return f".{key}"
    for name, value in _safe.slots(parent):
        if value is child:
            return f".{name}"
    for name in _C_ATTRIBUTES:
        if _safe.attribute(parent, name) is child:
            return f".{name}"
    if type(parent) is MethodType:
        return ".__self__" if parent.__self__ is child else ".__func__"
    if _safe.is_kind(parent, set, frozenset):
        return "{…}"
    if _safe.type_name(type(parent)) == "deque":
        from collections import deque

        if _safe.is_kind(parent, deque):
            return next((f"[{index}]" for index, value in enumerate(deque.__iter__(parent)) if value is child), UNNAMED)
    return UNNAMED


def is_module(value: Any) -> bool:
    return _safe.is_kind(value, ModuleType)
