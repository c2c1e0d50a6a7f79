"""The recordings read by a server: the last few stay in memory."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import OrderedDict
from typing import Any

import tidemark
from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark.mcp.folder import Folder, OpenFile
from tidemark.mcp.printable import printable

MAX_OPEN = 4
#: Bytes of all open files, besides the one that was read last.
MAX_OPEN_BYTES = 1 << 30
_MAX_RESULTS = 8


class OpenRecording:
    """A recording in memory, with its file: results contain its path relative to the folder."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.path = printable(file.path)
        try:
            interpreter = os.fsencode(sys.executable or "")
            handle = _engine.open(os.fsencode(file.own_path), True, b"", False, interpreter, os.fsencode(file.path))
        except TidemarkError as error:  # its message has the descriptor's path
            message = re.sub(re.escape(file.own_path) + r"(?!\d)", lambda _: self.path, str(error))
            raise TidemarkError(message) from None
        self.run = tidemark.Run(handle, file.path)


class OpenRecordings:
    """The recordings of a folder, read on request. Safe to use from several threads."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[int, ...], OpenRecording] = OrderedDict()
        self._results: OrderedDict[object, dict[str, Any]] = OrderedDict()

    def get(self, name: str) -> OpenRecording:
        """The recording with this name, with the file's current content. If there is none, a TidemarkError that names it."""
        file = self.folder.open(name)
        with self._lock:
            known = self._open.get(file.version)
            if known is not None and known.file.path == file.path:
                file.close()
                self._open.move_to_end(file.version)
                return known
            try:
                recording = OpenRecording(file)
            except BaseException:
                file.close()
                raise
            self._open[file.version] = recording
            while len(self._open) > MAX_OPEN or self._bytes() > MAX_OPEN_BYTES + file.size_bytes:
                self._open.popitem(last=False)  # a caller that still uses it keeps it until then
            return recording

    def _bytes(self) -> int:
        return sum(recording.file.size_bytes for recording in self._open.values())

    def known_result(self, key: object) -> dict[str, Any] | None:
        """A recent result: the pages of a list are from one result."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def keep_result(self, key: object, result: dict[str, Any]) -> None:
        with self._lock:
            self._results[key] = result
            while len(self._results) > _MAX_RESULTS:
                self._results.popitem(last=False)
