"""Tidemark: a GPU memory profiler for deep-learning training.

Importing this package imports neither torch nor numpy; each name below is loaded when it is first used. Sizes are bytes where
a name says ``bytes`` and MiB where it says ``mb``; times are nanoseconds from the recording's start where a name says ``ns``.
What is not known is ``None``, never 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark._exports import EXPORTS

if TYPE_CHECKING:
    from tidemark._exports import *  # noqa: F403  # the same names, for type checkers

# CMakeLists.txt and pyproject.toml read it here.
__version__ = "0.1.0"
# `import *` leaves Python's own range.
__all__ = ["__version__", *(name for name in sorted(EXPORTS) if name != "range")]


def __getattr__(name: str) -> object:
    module = EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'tidemark' has no attribute {name!r}")
    from importlib import import_module

    try:
        value = getattr(import_module(module), name)
    except ImportError as error:
        from tidemark._native import explained

        raise explained(error) from error.__cause__
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *EXPORTS})
