"""Python runs this file when it starts a program of ``python -m tidemark preflight``: it waits for PyTorch's data loaders.

The program's interpreter may have another environment than Tidemark's, so only this file's folder is on its path.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_LOADERS = "torch.utils.data.dataloader"


def _load(name: str, path: str, folders: list[str] | None = None) -> None:
    spec: Any = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _begin(loaders: ModuleType) -> None:
    """Called once the module of the data loaders is there."""
    package = os.path.dirname(os.path.dirname(_HERE))
    if "tidemark" not in sys.modules:
        _load("tidemark", os.path.join(package, "__init__.py"), [package])
    from tidemark.preflight import inside

    inside.begin(loaders, os.environ["TIDEMARK_PREFLIGHT"])


class _Finder:
    """Finds only that module, by the finders after this one."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name != _LOADERS:
            return None
        sys.meta_path.remove(self)
        spec: Any = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _begin(module)

        spec.loader.exec_module = exec_module
        return spec


def _run_next() -> None:
    """The environment's own sitecustomize, which this one hides."""
    folders = [folder for folder in sys.path if os.path.abspath(folder) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", folders)
    if spec is not None and spec.origin is not None:
        _load("sitecustomize", spec.origin)


if os.environ.get("TIDEMARK_PREFLIGHT"):
    sys.meta_path.insert(0, _Finder())
_run_next()
