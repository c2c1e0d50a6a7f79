"""The debugger's loggers."""

from __future__ import annotations

import logging
from pathlib import Path

from tidemark._logging import package_logger
from tidemark._sizes import MIB
from tidemark.events.log import LINE, TIME, RotatingLog, new_log_file


def debug_logger() -> logging.Logger:
    """``tidemark.debugger``."""
    return package_logger("tidemark.debugger")


def file_logger(log_dir: Path, prefix: str) -> tuple[logging.Logger, RotatingLog, Path]:
    """A child of ``tidemark.debugger`` that also writes a new ``<prefix>_<time>.log`` in ``log_dir``."""
    path = new_log_file(log_dir, prefix)
    logger = debug_logger().getChild(path.stem)
    handler = RotatingLog(path, max_bytes=10 * MIB, max_age_s=86400.0, backups=5)
    handler.setFormatter(logging.Formatter(LINE, TIME))
    logger.addHandler(handler)
    return logger, handler, path
