"""The ``tidemark`` program: beside this package, as installed, else on PATH."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tidemark._errors import TidemarkError
from tidemark._language import say


def find_program() -> str:
    """Path of the program. Raises TidemarkError if there is none."""
    beside = Path(__file__).parent / "bin" / "tidemark"
    if os.access(beside, os.X_OK):
        return str(beside)
    on_path = shutil.which("tidemark")
    if on_path is None:
        message = "there is no tidemark program: {path} is missing, and PATH has none; install tidemark-profiler again"
        raise TidemarkError(say(message, path=beside))
    return on_path
