"""Shared by the programs beside this file that record themselves and watch that, isolated from other recorders and monitors on this machine."""

import json
import os
import subprocess
import sys


def places(folder):
    """The environment of recorders and monitors that find each other in `folder` only. All phantom GPUs are the same one to a monitor."""
    return {**os.environ, "TIDEMARK_RUNTIME_DIR": str(folder)}


def record(folder, file):
    """Starts "file program" under `tidemark run`, into run.tide. Returns (the process, the JSON of its first line)"""
    recorded = subprocess.Popen(
        [os.environ["TIDEMARK"], "run", "-q", "-o", f"{folder}/run.tide", "--", sys.executable, file, "program"],
        env=places(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return recorded, json.loads(recorded.stdout.readline())
