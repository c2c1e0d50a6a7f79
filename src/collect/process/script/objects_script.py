# Answers a monitor's request for the storages of this process and their owners. Runs inside the program, with the GIL;
# objects_script.cpp starts it. answer() is defined in python/tidemark/_holders.
from __future__ import annotations

import os
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    def question() -> bytes:
        """The path of the request's file; empty if there is none. Defined in objects_script.cpp."""
        ...

    def modules() -> list[bytes]:
        """Name, text, name, text … of the modules, in load order. Defined in objects_script.cpp."""
        ...

    def quietly(function: Callable[..., Any], *arguments: Any) -> Any: ...  # of quiet.py


ModuleSpec = type(sys.__spec__)
PACKAGE = "_tidemark_holders"  # only while it is loaded: the program's imports are the same afterwards
answer: Callable[[str], object] | None = None
is_loaded = False  # or cannot be loaded


def is_importing() -> bool:
    """Whether a thread is importing a module. It holds the module's lock, and may be the thread that waits for this script:
    importing the module here would deadlock."""
    for module in list(sys.modules.values()):
        try:
            spec = object.__getattribute__(module, "__dict__").get("__spec__")
        except AttributeError:  # a program may put any object there
            continue
        if type(spec) is ModuleSpec and getattr(spec, "_initializing", False):
            return True
    return False


def load() -> Callable[[str], object]:
    """The function answer() of the modules."""
    package: Any = ModuleType(PACKAGE)
    package.__path__ = []
    loaded: dict[str, Any] = {PACKAGE: package}
    parts = modules()
    try:
        sys.modules[PACKAGE] = package
        for name, text in zip(map(bytes.decode, parts[::2]), parts[1::2]):
            full = f"{PACKAGE}.{name}"
            module: Any = ModuleType(full)
            loaded[full] = sys.modules[full] = module
            module.__package__, module.__file__ = PACKAGE, f"<tidemark>/{name}.py"
            exec(compile(text, module.__file__, "exec", dont_inherit=True), module.__dict__)
            setattr(package, name, module)
    finally:
        for full in loaded:
            sys.modules.pop(full, None)
    found: Callable[[str], object] = package._answer.answer
    return found


def reply(path: str) -> None:
    global answer, is_loaded
    if not is_loaded:
        is_loaded = True  # only one attempt
        answer = load()
    if answer:
        answer(path)


def run() -> bool:
    """Whether to run again: not needed, because the recorder signals a request until it is answered."""
    path = os.fsdecode(question())
    if not path or is_importing():
        return False
    if sys.modules.get("torch") is None:
        reply(path)
    else:
        quietly(reply, path)
    return False
