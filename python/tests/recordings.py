"""Shared by the tests of recordings: reading them with the program, and running scripts in processes of their own."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tidemark
from tidemark._program import find_program

MIB = 1 << 20


def read(path: str | Path, command: str = "summary", *options: str) -> dict[str, Any]:
    """One recording, as printed by ``tidemark COMMAND --format json``."""
    text = subprocess.check_output([find_program(), command, "--format", "json", *options, str(path)], text=True)
    document: dict[str, Any] = json.loads(text)
    return document["recordings"][0] if "recordings" in document else document


def cpu(document: dict[str, Any]) -> dict[str, Any]:
    """The document's device ``cpu``."""
    return next(device for device in document["devices"] if device["device"] == "cpu")


def issues(document: dict[str, Any]) -> list[str]:
    """The data-quality issues of a recording."""
    return [issue["id"] for issue in document["data_quality"]["issues"]]


@cache
def package_alone() -> str:
    """A folder for other interpreters: the package, without packages installed for this one."""
    folder = tempfile.mkdtemp(prefix="tidemark-package-")
    atexit.register(shutil.rmtree, folder)
    (Path(folder) / "tidemark").symlink_to(Path(tidemark.__file__).parent)
    return folder


def script(
    code: str, *arguments: str | Path, python: str = sys.executable, before: Sequence[str] = (), **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs code in a new Python process, after the words of ``before``; the caller checks the exit code."""
    command = [*before, python, "-c", code, *map(str, arguments)]
    environment = {**os.environ, **options.pop("environment", {})}
    if python != sys.executable:
        environment["PYTHONPATH"] = package_alone()
    return subprocess.run(command, text=True, capture_output=True, env=environment, timeout=120, **options)
