# Public functions have the texts of python/native/recorder.cpp here too, for the reference and for editors.
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, TypeVar, final

_Function = TypeVar("_Function", bound=Callable[..., Any])

@final
class Range:
    def __enter__(self) -> Range: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> Literal[False]: ...
    def __call__(self, function: _Function, /) -> _Function: ...

def mark(name: str, /) -> None:
    """Name this moment, such as "epoch 1" (at most 256 bytes of UTF-8); nothing where nothing records.

    Reports show memory at it: ``tidemark summary run.tide --at "epoch 1"``.
    """

def pause() -> None:
    """Stop recording what is allocated and freed, until ``resume()``; nothing where nothing records.

    Reports say for how long. Calls do not nest.
    """

def resume() -> None:
    """Continue what ``pause()`` stopped; nothing where nothing records."""

def step() -> Range:
    """A context manager around one step of a training loop, or a decorator of a function that is one.

    Nothing where nothing records. ``tidemark leaks`` takes its steps from it.
    """

def range(name: str, /) -> Range:
    """A context manager that names a range of time, such as "evaluation" (at most 256 bytes of UTF-8).

    Also a decorator of a function. Ranges nest. Nothing where nothing records. Reports group memory by it:
    ``tidemark table run.tide --by annotation``.
    """

def is_recording() -> bool:
    """Whether this process is being recorded, by ``start()`` or by ``tidemark run``; also while it is paused."""

def load(path: str, /) -> None: ...
def loaded() -> bool: ...
def connect(settings: list[bytes], /) -> bool: ...
def disconnect() -> bool: ...
def attach() -> int: ...
def name_file(path: str, name: str, /) -> None: ...
