# Answers a monitor's question for the storages of this process and who holds them. Runs inside the program, with the GIL;
# question.cpp starts it. answer() is of python/tidemark/_holders.
from __future__ import annotations

import os
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    def question() -> bytes:
        """The path of the question's file; empty where there is none. Of question.cpp."""
        ...

    def modules() -> list[bytes]:
        """Name, text, name, text … of the modules to load, in their order. Of question.cpp."""
        ...

    def quietly(function: Callable[..., Any], *arguments: Any) -> Any: ...  # of quiet.py


ModuleSpec = type(sys.__spec__)
PACKAGE = "_tidemark_holders"  # while it is loaded: what the program can import is the same afterwards
answer: Callable[[str], object] | None = None
is_loaded = False  # or could not be


def is_importing() -> bool:
    """Whether a thread is importing a module. It has the module's lock, and may be the one that waits for this script: what
    imports the module here would wait for it in turn, for ever."""
    for module in list(sys.modules.values()):
        try:
            spec = object.__getattribute__(module, "__dict__").get("__spec__")
        except AttributeError:  # a program may put anything there
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
        is_loaded = True  # one attempt
        answer = load()
    if answer:
        answer(path)


def run() -> bool:
    """Whether it is to be run again: that happens anyway as long as there is a question."""
    path = os.fsdecode(question())
    if not path or is_importing():
        return False
    if sys.modules.get("torch") is None:
        reply(path)
    else:
        quietly(reply, path)
    return False
