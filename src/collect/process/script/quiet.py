# Every script that runs inside the program begins with this text.
from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls it without the program's __torch_function__, destructors of its garbage, and torch.compile's look at frames."""
    dynamo = sys.modules.get("torch._C._dynamo.eval_frame")
    callback = dynamo.set_eval_frame(None) if dynamo else None
    collects = gc.isenabled()
    gc.disable()
    try:
        with sys.modules["torch"]._C.DisableTorchFunction():
            return function(*arguments)
    finally:
        if collects:
            gc.enable()
        if dynamo:
            dynamo.set_eval_frame(callback)
