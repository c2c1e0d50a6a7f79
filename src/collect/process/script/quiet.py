# Prepended to every script that runs inside the program.
from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls it without the program's __torch_function__ and without destructors of its garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with sys.modules["torch"]._C.DisableTorchFunction():
            return function(*arguments)
    finally:
        if collects:
            gc.enable()
