"""PyTorch imported during a recording: hooks its libraries once they are loaded."""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType

from tidemark import _recorder

_original = ExtensionFileLoader.create_module


def _create_module(loader: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
    """Loads an extension module, and with it the libraries that it needs."""
    module = _original(loader, spec)
    if spec.name.partition(".")[0].startswith("torch") and _recorder.is_recording():
        _recorder.attach()
    return module


def watch_imports() -> None:
    """From now on. Modules loaded by other means than Python's import statement are not noticed."""
    if ExtensionFileLoader.create_module is _original:
        ExtensionFileLoader.create_module = _create_module  # type: ignore[method-assign, assignment]
