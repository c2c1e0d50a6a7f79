"""The package's loggers, ``tidemark`` and below, which print without any logging configuration."""

from __future__ import annotations

import logging
import sys


class _Console(logging.Handler):
    """Writes ``[INFO] text`` to the current stderr, and nothing if the program has configured logging itself."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("[%(levelname)s] %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the line; as in logging, a broken stream does not stop the program."""
        if logging.getLogger().handlers:
            return
        try:
            print(self.format(record), file=sys.stderr)
        except (OSError, ValueError):
            self.handleError(record)


def package_logger(name: str = "tidemark") -> logging.Logger:
    """``tidemark`` or a logger below it; all are at INFO unless the program has set another level."""
    package = logging.getLogger("tidemark")
    if not any(isinstance(handler, _Console) for handler in package.handlers):
        package.addHandler(_Console())
        if package.level == logging.NOTSET:
            package.setLevel(logging.INFO)
    return logging.getLogger(name)
