"""The recorder: ``tidemark recorder``, a separate process, and the messages between the two (src/cli/recorder.cpp)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from tidemark._errors import TidemarkError
from tidemark._language import say
from tidemark._program import find_program


@dataclass(frozen=True)
class RecordedFile:
    """A complete recording."""

    path: str
    pid: int
    events: int
    dropped: int  #: lost events
    bytes: int
    failed: bool  #: writing stopped early, such as on a full disk


class Recorder:
    """A recorder that listens; nothing is recorded yet. Raises TidemarkError if it cannot be started."""

    def __init__(self, options: list[str]) -> None:
        command = [find_program(), "recorder", "--program", str(os.getpid()), *options]
        pipe = subprocess.PIPE
        try:
            # It leaves this process's session and forks, so that it is not a child of this process: this child ends at once.
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/")
        except (OSError, RuntimeError) as error:  # RuntimeError: a subinterpreter before CPython 3.12
            raise TidemarkError(say("the recorder cannot be started: {error}", error=error)) from error
        self._process.wait()
        #: "NAME=value" for tidemark_connect()
        self.settings: list[bytes] = []
        #: the recorder's
        self.pid = self._process.pid
        heard = self._hear()
        if heard is None:
            raise TidemarkError(self.end().why or say("the recorder ended before it began"))
        self.pid = heard["pid"]
        self.settings = [os.fsencode(setting) for setting in heard["environment"]]

    @property
    def collector_path(self) -> str:
        """Path of the recording library."""
        return next(
            os.fsdecode(line[len(b"TIDEMARK_LIBRARY=") :]) for line in self.settings if line.startswith(b"TIDEMARK_LIBRARY=")
        )

    def connected(self) -> str:
        """Waits until it has accepted this process; returns the path of the recording. Raises TidemarkError if it does not."""
        heard = self._hear()
        if heard is not None and "recording" in heard:
            return str(heard["recording"])
        why = heard.get("error") if heard is not None else None
        ended = self.end()
        raise TidemarkError(why or ended.why or say("the recorder ended before it began"))

    def end(self) -> Ended:
        """Tells it to end and waits until the files are complete."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with contextlib.suppress(OSError):  # it has ended; a word, because a forked child may hold the other end open
            process.stdin.write(b"stop\n")
            process.stdin.close()
        files: list[RecordedFile] = []
        finished = False
        while (heard := self._hear()) is not None:
            if "files" in heard:
                files = [RecordedFile(**file) for file in heard["files"]]
                finished = True
        messages = process.stderr.read().decode(errors="replace").splitlines()
        self.forget()
        # If this process is the init process of a container, the recorder has become its child.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        return Ended(
            files, [line[len("tidemark: ") :] if line.startswith("tidemark: ") else line for line in messages], finished
        )

    def forget(self) -> None:
        """Closes the connection; called in a forked child, to which the recorder does not belong."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _hear(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            return None
        heard: dict[str, Any] = json.loads(line)
        return heard


@dataclass(frozen=True)
class Ended:
    """The result of a recorder."""

    files: list[RecordedFile]
    messages: list[str]  #: its messages meanwhile
    finished: bool  #: False if it was killed: files lack up to the last second

    @property
    def why(self) -> str:
        return "; ".join(message.partition("; see `tidemark recorder")[0] for message in self.messages)
