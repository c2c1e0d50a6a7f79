"""The extension modules: the error if this interpreter has none."""

from __future__ import annotations

import sys
import sysconfig
from importlib.util import find_spec

MODULES = ("_engine", "_recorder")


def explained(error: ImportError) -> ImportError:
    """``error``, raised by importing a part of the package; if an extension module is missing, an error with the remedy."""
    missing = [module for module in MODULES if find_spec(f"tidemark.{module}") is None]
    if not missing:
        return error
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        reason = f"free-threaded {python}t loads no modules of the stable ABI; {python} does, and `tidemark run` needs none"
    else:
        reason = "`pip install .` in a clone brings them; or build, and put build/release/python on PYTHONPATH"
    return ImportError(f"tidemark has no {' and '.join(missing)} here: {reason}", name=error.name, path=error.path)
