"""The folder that a server reads: nothing outside it is opened, whatever names and links contain, even while they change.

A name is followed one part at a time, from one open folder to the next, and links are read here instead of by the kernel. So a
folder that is moved or replaced by a link meanwhile does not lead outside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from tidemark._errors import TidemarkError
from tidemark.mcp.printable import printable

URI = "tidemark://recording/"
URI_TEMPLATE = URI + "{+path}"
#: File names of recordings and PyTorch snapshots in listings; any file may be opened by name, and its content decides.
SUFFIXES = (".tide", ".pickle", ".pickle.xz", ".pickle.gz", ".pickle.zst")

_MAX_LINKS = 40  # the kernel's limit
_MAX_DEPTH = 16  # of a listing
_MAX_VISITED = 100_000  # files, in a listing


@dataclass(frozen=True)
class Listed:
    """A file of the folder with the name of a recording."""

    path: str  #: relative to the folder, as written by os.fsdecode()
    size_bytes: int
    changed_ns: int  #: Unix time

    @property
    def uri(self) -> str:
        """URI of its resource: also for names that are not valid text."""
        return uri_of(self.path)


@dataclass(frozen=True)
class Listing:
    """The recordings of a folder, by name."""

    files: list[Listed]
    complete: bool  #: False: the folder has more files or levels than the listing visits


class OpenFile:
    """A regular file of the folder. Opened by its descriptor, so that a later file of the same name is another one."""

    def __init__(self, descriptor: int, path: str, status: os.stat_result) -> None:
        self._descriptor = descriptor
        self.path = path  #: relative to the folder, without links
        self.version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        self.size_bytes = status.st_size

    @property
    def own_path(self) -> str:
        """A path that means exactly this file, while it is open."""
        return f"/proc/self/fd/{self._descriptor}"

    def close(self) -> None:
        """Also called when the object is garbage-collected."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


def uri_of(path: str) -> str:
    """The resource of a path relative to the folder."""
    return URI + quote(os.fsencode(path))


class Folder:
    """A folder, open while this object exists. Safe to use from several threads."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        try:
            self._descriptor = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise TidemarkError(f"{printable(path)}: {error.strerror}; name the folder of the recordings") from None

    def open(self, name: str) -> OpenFile:
        """The regular file of this name: a path relative to the folder, a full path in the folder, or a resource's URI.
        Otherwise raises a TidemarkError that names it.
        """
        descriptors: list[int] = []
        parts: list[bytes] = []
        try:
            descriptor = self._walk(name, descriptors, parts)
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise _error(name, "is a folder; list_recordings shows the recordings in it")
            if not stat.S_ISREG(status.st_mode):
                raise _error(name, "not a regular file")
            kept = os.dup(descriptor)
        finally:
            for opened in descriptors:
                os.close(opened)
        return OpenFile(kept, os.fsdecode(b"/".join(parts)), status)

    def _walk(self, name: str, descriptors: list[int], parts: list[bytes]) -> int:
        """Opens the target of the name, and each folder on the way, into ``descriptors``."""
        pending = self._split(name, self._inside(name, _encoded(name)))
        links = 0
        while pending:
            part = pending.pop()
            if part == b"..":
                if not parts:
                    raise _outside(name)
                parts.pop()
                os.close(descriptors.pop())
                continue
            above = descriptors[-1] if descriptors else self._descriptor
            try:
                opened = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
            except OSError as error:
                problem = "no such file; list_recordings shows those there are"
                raise _error(name, problem if isinstance(error, FileNotFoundError) else str(error.strerror)) from None
            descriptors.append(opened)
            parts.append(part)
            if not stat.S_ISLNK(os.fstat(opened).st_mode):
                continue
            target = os.readlink(b"", dir_fd=opened)
            os.close(descriptors.pop())
            parts.pop()
            links += 1
            if links > _MAX_LINKS:
                raise _error(name, "too many symbolic links")
            if target.startswith(b"/"):
                target = self._inside(name, target)
                while descriptors:
                    os.close(descriptors.pop())
                parts.clear()
            pending += self._split(name, target)
        return descriptors[-1] if descriptors else self._descriptor

    def _inside(self, name: str, path: bytes) -> bytes:
        """The path relative to this folder."""
        if not path.startswith(b"/"):
            return path
        own = os.fsencode(self.path).rstrip(b"/") + b"/"
        if path + b"/" == own or path.startswith(own):
            return path[len(own) :]
        raise _outside(name)

    @staticmethod
    def _split(name: str, path: bytes) -> list[bytes]:
        """The parts of a path, the last one first."""
        if b"\0" in path:
            raise _error(name, "a name has no byte 0")
        return [part for part in reversed(path.split(b"/")) if part not in (b"", b".")]

    def recordings(self) -> Listing:
        """Regular files with names of recordings, at most 16 levels deep, without links and hidden folders."""
        files: list[Listed] = []
        visited = 0
        complete = True
        for level, names, descriptor, here in self._folders():
            visited += len(names)
            if visited > _MAX_VISITED:
                complete = False
                break
            if level == _MAX_DEPTH:
                complete = False
            for name in names:
                if not name.endswith(SUFFIXES):
                    continue
                try:
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue
                if stat.S_ISREG(status.st_mode):
                    files.append(Listed(f"{here}/{name}"[2:], status.st_size, status.st_mtime_ns))  # without "./"
        return Listing(sorted(files, key=lambda file: file.path), complete)

    def _folders(self) -> Iterator[tuple[int, list[str], int, str]]:
        """Each folder: its level, its files, its descriptor, its path."""
        for here, folders, names, descriptor in os.fwalk(".", dir_fd=self._descriptor):
            level = here.count("/")
            folders[:] = [] if level >= _MAX_DEPTH else sorted(name for name in folders if not name.startswith("."))
            yield level, names, descriptor, here


def _encoded(name: str) -> bytes:
    if name.startswith(URI):
        return unquote_to_bytes(name[len(URI) :])
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:
        raise _error(name, "no such file; list_recordings shows those there are") from None


def _error(name: str, problem: str) -> TidemarkError:
    return TidemarkError(f"{printable(name)}: {problem}")


def _outside(name: str) -> TidemarkError:
    return _error(name, "outside the folder of this server, where nothing is read; list_recordings shows what is in it")
