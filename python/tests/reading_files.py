"""Shared by the tests of reading: recordings and snapshots, and the commands' output for them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidemark._program import find_program

PROGRAM = find_program()
#: A build with tests, or, for a wheel tested without one, the recordings that it would write.
BUILD = os.environ.get("TIDEMARK_BUILD")
RECORDINGS = os.environ.get("TIDEMARK_RECORDINGS")
SNAPSHOTS = Path(__file__).parents[2] / "tests" / "data" / "snapshots"

#: A training loop with tensors that can be counted by hand: one parameter of 1024 * 512 and one of 512 floats, and Adam's two
#: states of each. At its end it requests more memory than available.
TRAINING = """
import torch
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = torch.nn.Linear(1024, 512)
    def forward(self, x):
        return self.mlp(x).relu()
model = torch.nn.Sequential(Layer())
optimizer = torch.optim.Adam(model.parameters())
for step in range(12):
    optimizer.zero_grad()
    model(torch.randn(256, 1024)).square().mean().backward()
    optimizer.step()
try:
    torch.empty(1 << 60)
except RuntimeError:
    pass
"""
PARAMETER_BYTES = (1024 * 512 + 512) * 4


def golden_recordings(folder: Path) -> Path:
    """The recordings of the commands' own tests, written into the folder."""
    if RECORDINGS:
        shutil.copytree(RECORDINGS, folder, dirs_exist_ok=True)
    elif BUILD:
        subprocess.run([Path(BUILD) / "tests" / "bin" / "golden_recordings", folder], check=True)
    else:
        pytest.skip("TIDEMARK_BUILD and TIDEMARK_RECORDINGS are not set")
    return folder


def record(folder: Path) -> Path:
    """A recording of TRAINING."""
    pytest.importorskip("torch")
    program = folder / "train.py"
    program.write_text(TRAINING)
    target = folder / "train.tide"
    subprocess.run([PROGRAM, "run", "-o", target, "--", sys.executable, program], check=True, capture_output=True)
    return target


def command(*words: str | Path) -> str:
    """The output of a command."""
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True).stdout


def json_of(*words: str | Path) -> dict[str, Any]:
    """The output of a command with ``--format json``."""
    document: dict[str, Any] = json.loads(command(*words, "--format", "json"))
    return document


def csv_of(path: Path) -> list[dict[str, str]]:
    """The output of ``export --to csv --stacks``."""
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(command("export", path, "--to", "csv", "--stacks"))))
