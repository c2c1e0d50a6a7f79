"""The event profiler's log: rotated by size and age with gzip, written by a thread, so that ``record()`` does not wait.

If the process is killed with SIGKILL, lines not yet written are lost: at most those of the last twentieth of a second.
Exceptions, ``sys.exit`` and the end of the program lose none: they are written through ``atexit``.
"""

from __future__ import annotations

import atexit
import gzip
import logging
import os
import shutil
import threading
import time
import weakref
from collections import deque
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Callable

LINE = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
TIME = "%Y-%m-%d %H:%M:%S"
_PERIOD_S = 0.05


class RotatingLog(RotatingFileHandler):
    """A log that starts a new file at ``max_bytes`` or ``max_age_s``; NAME.1.gz is the newest of the earlier ones."""

    def __init__(self, path: Path, max_bytes: int, max_age_s: float, backups: int) -> None:
        if max_bytes <= 0 or max_age_s <= 0 or backups < 1:
            raise ValueError("max_log_bytes and max_log_age_s have to be above 0, log_backups at least 1")
        super().__init__(path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8")
        self._max_age_s = max_age_s
        self._started = time.time()
        self.namer = lambda name: f"{name}.gz"
        self.rotator = _compress

    def shouldRollover(self, record: logging.LogRecord) -> int:  # a name of logging
        """Whether the line goes into a new file."""
        too_old = record.created - self._started >= self._max_age_s
        return bool(too_old or super().shouldRollover(record))

    def doRollover(self) -> None:  # a name of logging
        """Compresses the file and starts a new one."""
        super().doRollover()
        self._started = time.time()


def _compress(source: str, target: str) -> None:
    with Path(source).open("rb") as plain, gzip.open(target, "wb") as packed:
        shutil.copyfileobj(plain, packed)
    Path(source).unlink()


def new_log_file(log_dir: Path, prefix: str) -> Path:
    """An empty ``<prefix>_<time>.log`` in ``log_dir``, with a number after the time if a second has several."""
    log_dir.mkdir(parents=True, exist_ok=True)
    started, count = time.strftime("%Y%m%d_%H%M%S"), 1
    while True:
        path = log_dir / (f"{prefix}_{started}.log" if count == 1 else f"{prefix}_{started}_{count}.log")
        try:
            path.touch(exist_ok=False)
            return path
        except FileExistsError:
            count += 1


def open_log(log_dir: Path, max_bytes: int, max_age_s: float, backups: int) -> tuple[logging.Logger, Path]:
    """A logger ``MemoryProfiler_<time>`` to stderr and a new ``memory_profiler_<time>.log`` in ``log_dir``; the file's path.

    Raises OSError if the folder or file cannot be created, ValueError for invalid limits.
    """
    path = new_log_file(log_dir, "memory_profiler")
    logger = logging.getLogger("MemoryProfiler_" + path.stem[len("memory_profiler_") :])
    logger.setLevel(logging.INFO)
    for handler in (RotatingLog(path, max_bytes, max_age_s, backups), logging.StreamHandler()):
        handler.setFormatter(logging.Formatter(LINE, TIME))
        logger.addHandler(handler)
    return logger, path


class LineWriter:
    """Writes lines to a logger from its own thread, in the order and with the times at which they were added."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        #: (seconds since 1970, function that makes the text). Appending to a deque needs no lock.
        self._waiting: deque[tuple[float, Callable[[], str]]] = deque()
        self.put = self._waiting.append
        self._writing = threading.Lock()
        self._closed = threading.Event()
        self._process = os.getpid()
        self._thread: threading.Thread | None = threading.Thread(target=_write_lines, args=(weakref.ref(self), self._closed))
        self._thread.daemon = True
        self._thread.name = "tidemark-log"
        self._thread.start()
        atexit.register(self.flush)

    def flush(self) -> None:
        """Writes waiting lines; in a forked child nothing, because the lines are the parent's."""
        if os.getpid() != self._process:
            self._waiting.clear()
            return
        with self._writing:
            while self._waiting:
                created, text = self._waiting.popleft()
                line = self._logger.makeRecord(self._logger.name, logging.INFO, "", 0, text(), (), None)
                line.created, line.msecs = created, (created % 1) * 1000
                self._logger.handle(line)

    def close(self) -> None:
        """Writes waiting lines, ends the thread and closes the log."""
        self._closed.set()
        if self._thread is not None and os.getpid() == self._process:
            self._thread.join()
        self._thread = None
        self.flush()
        atexit.unregister(self.flush)
        for handler in list(self._logger.handlers):
            self._logger.removeHandler(handler)
            handler.close()


def _write_lines(writer_ref: weakref.ref[LineWriter], closed: threading.Event) -> None:
    while not closed.wait(_PERIOD_S):
        writer = writer_ref()
        if writer is None:
            return
        writer.flush()
        del writer
