"""Reads objects without running their code: no ``repr``, no properties, no ``__getattr__``, ``__class__``, ``__eq__`` or
``__hash__`` written in Python, and no mutation.

Everything goes through ``type(x)``, which cannot be overridden, and through descriptors that are part of CPython.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

_mro_of = type.__dict__["__mro__"].__get__
_type_dict_of = type.__dict__["__dict__"].__get__
_type_name_of = type.__dict__["__name__"].__get__
_CO_OPTIMIZED = 1


def mro(cls: type) -> tuple[type, ...]:
    found: tuple[type, ...] = _mro_of(cls)
    return found


def is_kind(value: object, *kinds: type) -> bool:
    """``isinstance`` without using ``value.__class__`` or a metaclass."""
    return any(base is kind for base in mro(type(value)) for kind in kinds)


def type_dict(cls: type) -> Any:
    """The class's own attributes, as a mapping."""
    return _type_dict_of(cls)


def type_name(cls: type) -> str:
    name: str = _type_name_of(cls)
    return name


def module_of(cls: type) -> str | None:
    name = type_dict(cls).get("__module__")
    return name if type(name) is str else None


def subclasses(cls: type) -> list[type]:
    """The class and all its subclasses."""
    found: list[type] = [cls]
    seen = {id(cls)}
    for base in found:
        derived: type
        for derived in type.__subclasses__(base):
            if id(derived) not in seen:
                seen.add(id(derived))
                found.append(derived)
    return found


def descriptor(cls: type, name: str) -> Any | None:
    """The C descriptor of an attribute; ``None`` if a class replaces it in Python."""
    for base in mro(cls):
        found = type_dict(base).get(name)
        if found is not None:
            return found if type(found) in (GetSetDescriptorType, MemberDescriptorType) else None
    return None


def attribute(value: object, name: str) -> Any | None:
    """An attribute provided by C code, such as ``__traceback__`` of exceptions; ``None`` if it is missing or not set."""
    found = descriptor(type(value), name)
    if found is None:
        return None
    try:
        return found.__get__(value)
    except Exception:  # an unset slot, or an error of C code
        return None


def instance_dict(value: object) -> dict[str, Any] | None:
    """The object's own attributes, if they are in a plain dict."""
    found = attribute(value, "__dict__")
    return found if type(found) is dict else None


def slots(value: object) -> list[tuple[str, Any]]:
    """The slots (``__slots__``, or members of a C structure) that are set, by name."""
    found = []
    for base in mro(type(value)):
        for name, member in list(type_dict(base).items()):
            if type(member) is MemberDescriptorType and type(name) is str:
                try:
                    found.append((name, member.__get__(value)))
                except Exception:  # not set
                    continue
    return found


def items(mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """The entries of a dict or a subclass of it; entries that another thread changes meanwhile may be missing."""
    try:
        return list(dict.items(mapping))
    except RuntimeError:
        return []


def is_module_body(frame: FrameType) -> bool:
    """Whether a frame's local variables are the module's variables."""
    return not frame.f_code.co_flags & _CO_OPTIMIZED and frame.f_locals is frame.f_globals


def locals_of(frame: FrameType) -> list[tuple[str, Any]]:
    """A frame's local variables, including contents of cells. Call ``release_locals`` afterwards."""
    mapping: Any = frame.f_locals
    if type(mapping) is dict:
        return items(mapping)
    view = frame.f_code.co_flags & _CO_OPTIMIZED  # a view in CPython 3.13; a class body may have any mapping
    return list(mapping.items()) if view else []


def release_locals(frame: FrameType) -> None:
    """Releases the dict that ``locals_of`` made CPython before 3.13 keep in the frame, with references to all values.

    It is cleared, unless another object holds it (a debugger) or it would be copied back (a trace function is active).
    """
    mapping: Any = frame.f_locals
    if frame.f_code.co_flags & _CO_OPTIMIZED and type(mapping) is dict:
        only_the_frame = 3  # the frame's reference, this function's, and getrefcount's argument
        if sys.getrefcount(mapping) == only_the_frame and frame.f_trace is None and sys.gettrace() is None:
            mapping.clear()


def place(code: CodeType, line: int | None = None) -> str:
    """``train.py:24``: the path from the working directory, or its last two parts."""
    name = code.co_filename
    if not name.startswith("<"):
        path = Path(name)
        try:
            name = str(path.relative_to(Path.cwd()))
        except (ValueError, OSError):  # on another drive; or the working directory is gone
            name = str(Path(*path.parts[-2:]))
    return f"{name}:{code.co_firstlineno if line is None else line}"


def key_text(key: object) -> str:
    """A dict's key: plain values as Python writes them, other objects by their type."""
    if type(key) in (str, int, float, bool, bytes, type(None)):
        text = repr(key)
        return text if len(text) <= 60 else text[:57] + "…"
    if type(key) is tuple:
        parts = [key_text(part) for part in key[:4]] + (["…"] if len(key) > 4 else [])
        return f"({', '.join(parts)})"
    if type(key) is type:
        return type_name(key)
    return f"<{type_name(type(key))}>"


def function_name(function: Any) -> str:
    """``Trainer.step``, ``make.<locals>.step``; for a Python or builtin function."""
    if is_kind(function, BuiltinFunctionType):
        return str(attribute(function, "__qualname__"))
    name = attribute(function, "__qualname__")
    return name if type(name) is str else "<function>"
