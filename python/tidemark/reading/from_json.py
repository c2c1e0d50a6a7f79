"""Converts JSON of the engine to dataclasses, by their annotations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tidemark._errors import TidemarkError

T = TypeVar("T")
Convert = Callable[[Any], Any]


def from_json(kind: Callable[..., T], value: dict[str, Any]) -> T:
    """A ``kind`` from the object. A missing key is None if that is allowed.

    TidemarkError for a key without a field, and for a field without a key: then engine and package have different versions.
    """
    made: T = _converter(kind)(value)
    return made


@cache
def _converter(annotation: Any) -> Convert:
    if is_dataclass(annotation):
        return _of_dataclass(annotation)
    arguments = get_args(annotation)
    if get_origin(annotation) is tuple:
        of_item = _converter(arguments[0])
        return lambda items: tuple(map(of_item, items))
    if get_origin(annotation) is Union and type(None) in arguments and len(arguments) == 2:
        of_value = _converter(arguments[0])
        return lambda value: None if value is None else of_value(value)
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _of_dataclass(kind: Any) -> Convert:
    converters: dict[str, Convert] = {}  # by key; filled at first use: a class may have fields of its own type
    optional: dict[str, None] = {}

    def convert(value: dict[str, Any]) -> Any:
        if not converters:
            hints = get_type_hints(kind)
            optional.update({field.name: None for field in fields(kind) if type(None) in get_args(hints[field.name])})
            converters.update({field.name: _converter(hints[field.name]) for field in fields(kind)})  # atomic, for threads
        if not value.keys() <= converters.keys():
            unknown = sorted(value.keys() - converters.keys())
            raise TidemarkError(f"{kind.__name__} has no fields {unknown}: engine and package are of different versions")
        arguments: dict[str, Any] = dict(optional)
        for name, item in value.items():
            arguments[name] = converters[name](item)
        if len(arguments) != len(converters):
            missing = sorted(converters.keys() - arguments.keys())
            raise TidemarkError(f"{kind.__name__} needs {missing}: engine and package are of different versions")
        return kind(**arguments)

    return convert
