"""Tidemark: a GPU memory profiler for deep-learning training.

Importing this package imports neither torch nor numpy; each name below is loaded at its first use. Sizes are bytes if a name
contains ``bytes`` and MiB if it contains ``mb``; times are nanoseconds from the recording's start if a name contains ``ns``.
Unknown values are ``None``, never 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark._exports import EXPORTS

if TYPE_CHECKING:
    from tidemark._exports import *  # noqa: F403  # the same names, for type checkers

# CMakeLists.txt and pyproject.toml read it here.
__version__ = "0.1.0"
# `import *` does not replace Python's own range.
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
