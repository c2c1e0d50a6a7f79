"""Recording this process from inside: ``tidemark.record()``, ``start()`` and ``stop()``; also in notebooks and REPLs.

The recorder is a separate process, so that the recording survives however this process ends. Under ``tidemark run`` there is a
recorder already, and ``record()`` marks a range in its recording instead.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import warnings
from pathlib import Path
from types import TracebackType
from typing import Callable, Union

from tidemark import _recorder
from tidemark._errors import TidemarkError
from tidemark._language import say
from tidemark.recording.helper import Ended, RecordedFile, Recorder
from tidemark.recording.late_imports import watch_imports

PathLike = Union[str, "os.PathLike[str]"]

_lock = threading.RLock()
_current: Recording | None = None
_registered = False
_at_load: list[Callable[[], None]] = []


class Recording:
    """A recording of this process; ``record()`` and ``start()`` create one.

    Attributes:
        path: of this process's recording; ``None`` if another recorder (``tidemark run``) records it already.
        files: once it is complete, that recording and those of forked children, with their events, lost events and bytes.
    """

    def __init__(self, path: str, options: list[str]) -> None:
        self.path: str | None = None
        self.files: list[RecordedFile] = []
        self._output = path
        self._options = options
        self._recorder: Recorder | None = None
        self._range: _recorder.Range | None = None

    @property
    def paths(self) -> list[str]:
        """Paths of ``files``, this process's first."""
        return [file.path for file in self.files]

    def start(self) -> Recording:
        """Begin. Raises TidemarkError if it cannot, such as in a folder that is not writable."""
        global _current
        with _lock:
            if _current is not None:
                raise TidemarkError(
                    say(
                        "this process is being recorded already, to {path}: tidemark.stop() ends that recording",
                        path=_current._output,
                    )
                )
            _join_manual_run()
            if _recorder.is_recording():
                self._begin_range()
            else:
                self._begin_recording()
            _current = self
        return self

    def stop(self) -> list[str]:
        """End; the files are complete then. Returns ``paths``; no effect if it has ended already.

        Raises TidemarkError if the recording is incomplete: the message describes the part that exists.
        """
        global _current
        with _lock:
            if _current is not self:
                return self.paths
            _current = None
            if self._range is not None:
                self._range.__exit__(None, None, None)
            if self._recorder is None:
                return []
            _recorder.disconnect()
            ended = self._recorder.end()
        self._take(ended)
        return self.paths

    def __repr__(self) -> str:
        state = "recording" if _current is self else "complete" if self.files else "not recording"
        return f"<Recording {self.path or self._output}: {state}>"

    def __enter__(self) -> Recording:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self.stop()
        except TidemarkError as problem:
            if error is None:
                raise
            warnings.warn(str(problem), stacklevel=2)  # do not replace the program's own exception

    def _begin_range(self) -> None:
        name = Path(self._output).stem
        warnings.warn(
            say(
                'this program is being recorded already, by `tidemark run` or the program that started it: "{name}" is a '
                "range of that recording, and {path} is not written",
                name=name,
                path=self._output,
            ),
            stacklevel=4,
        )
        self._range = _recorder.range(name)
        self._range.__enter__()

    def _begin_recording(self) -> None:
        global _registered
        recorder = Recorder(["--output", self._output, *self._options])
        try:
            load_library(recorder.collector_path)
        except OSError as error:
            recorder.end()
            raise TidemarkError(say("the library that records cannot be loaded here: {error}", error=error)) from error
        if not _recorder.connect(recorder.settings):
            raise TidemarkError(recorder.end().why or say("the recorder cannot be reached; stderr says why"))
        try:
            self.path = recorder.connected()
        except TidemarkError:
            _recorder.disconnect()
            raise
        self._recorder = recorder
        watch_imports()
        if not _registered:
            _registered = True
            atexit.register(_stop_at_exit)
            os.register_at_fork(after_in_child=_forget_in_child)

    def _take(self, ended: Ended) -> None:
        own = os.getpid()
        self.files = sorted(ended.files, key=lambda file: (file.pid != own, file.path))
        if not ended.finished:
            raise TidemarkError(
                say("{path}: the recorder was killed; what it had written until then can be read", path=self.path)
            )
        if any(file.failed for file in ended.files):
            raise TidemarkError(say("{path}: the recording is not complete: {why}", path=self.path, why=ended.why))
        for message in ended.messages:
            warnings.warn(message, stacklevel=4)


def _join_manual_run() -> None:
    """If a recorder waits for this process (``tidemark run --manual``), connect to it now."""
    library = os.environ.get("TIDEMARK_LIBRARY")
    if library and "TIDEMARK_SOCKET" in os.environ and not _recorder.loaded():
        load_library(library)
        _recorder.attach()
        watch_imports()


def _stop_at_exit() -> None:
    recording = _current
    if recording is None:
        return
    try:
        recording.stop()
    except TidemarkError as problem:
        print(f"tidemark: {problem}", file=sys.stderr)


def _forget_in_child() -> None:
    """A forked child is recorded by the same recorder, in its own file; the parent ends that recording."""
    global _current, _lock
    _lock = threading.RLock()
    recording, _current = _current, None
    if recording is not None and recording._recorder is not None:
        recording._recorder.forget()


def on_load(call: Callable[[], None]) -> None:
    """Calls it when the recording library is loaded, or now if it is."""
    if _recorder.loaded():
        call()
    else:
        _at_load.append(call)


def load_library(path: str) -> None:
    """Raises OSError."""
    _recorder.load(path)
    while _at_load:
        _at_load.pop()()


def default_path() -> str:
    """``train-20261120-221500.tide`` for ``python train.py``, the name that ``tidemark run`` would use."""
    program = Path(sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python").stem
    return f"{program}-{time.strftime('%Y%m%d-%H%M%S')}.tide"


def record(
    path: PathLike | None = None,
    *,
    stacks: str = "python",
    attribute: bool = True,
    sample_interval: str | float | None = None,
    samples: bool = True,
    max_size: str | int | None = None,
    force: bool = False,
) -> Recording:
    """A context manager that records the tensor memory of this process; options are those of ``tidemark run``.

    Args:
        path: the recording; by default PROGRAM-DATE-TIME.tide. Forked children get their own files, named after it.
        stacks: to record with each allocation: ``"none"``, ``"python"``, ``"native"`` or ``"both"``.
        attribute: record the owners of the memory: modules, parameters, gradients, optimizer state, backward nodes.
        sample_interval: between samples of device and host memory, such as ``"50ms"``, or in seconds.
        samples: ``False``: do not sample device and host memory.
        max_size: stop recording before a file exceeds this, such as ``"500MB"``, or in bytes.
        force: replace an existing recording.

    Entering it raises TidemarkError if nothing can be recorded; leaving it if the recording is incomplete, unless the program's
    own exception is being raised. Memory allocated before is not recorded. Under ``tidemark run`` it marks a range of that
    recording, and logs that.
    """
    options = ["--stacks", stacks, "--attribute", "on" if attribute else "off"]
    if sample_interval is not None:
        options += [
            "--sample-interval",
            sample_interval if isinstance(sample_interval, str) else f"{sample_interval * 1000:g}ms",
        ]
    if not samples:
        options += ["--no-samples"]
    if max_size is not None:
        options += ["--max-size", str(max_size)]
    if force:
        options += ["--force"]
    return Recording(str(Path(default_path() if path is None else path).absolute()), options)


def start(
    path: PathLike | None = None,
    *,
    stacks: str = "python",
    attribute: bool = True,
    sample_interval: str | float | None = None,
    samples: bool = True,
    max_size: str | int | None = None,
    force: bool = False,
) -> Recording:
    """Begin to record this process, until ``stop()`` or its end; arguments and errors as for ``record()``."""
    return record(
        path,
        stacks=stacks,
        attribute=attribute,
        sample_interval=sample_interval,
        samples=samples,
        max_size=max_size,
        force=force,
    ).start()


def stop() -> list[str]:
    """End the recording of ``start()``, and return the paths of the recordings, this process's first; they can be read at once.

    ``[]`` if nothing was being recorded, or not by this process. Raises TidemarkError if a recording is incomplete.
    """
    recording = _current
    return recording.stop() if recording is not None else []
