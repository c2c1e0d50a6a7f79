"""Runs programs on a GPU: one that is not there (real calls of torch.cuda, answered by ``tidemark plan``), or a real one.

TIDEMARK_GPU_PYTHON names the interpreter of a machine that has a GPU. Where it is not set, TIDEMARK_PHANTOM_PYTHON names one
with PyTorch for CUDA, and TIDEMARK_BUILD the folder (build/<preset>) of the program that plans.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_BUILD = os.environ.get("TIDEMARK_BUILD", "")
_PHANTOM_PYTHON = os.environ.get("TIDEMARK_PHANTOM_PYTHON", "")
_REAL_PYTHON = os.environ.get("TIDEMARK_GPU_PYTHON", "")

_STARTUP = Path(__file__).parents[2] / "tests" / "startup" / "no_compiler"

GPU_PYTHON = _REAL_PYTHON or _PHANTOM_PYTHON

needs_gpu = pytest.mark.skipif(
    not (_REAL_PYTHON or (_BUILD and _PHANTOM_PYTHON)),
    reason="neither TIDEMARK_BUILD and TIDEMARK_PHANTOM_PYTHON are set, nor TIDEMARK_GPU_PYTHON",
)


def on_gpu(*plan_options: str) -> list[str]:
    """What stands before a program that runs on a GPU: ``tidemark plan`` and these options of it; nothing on a real one."""
    if _REAL_PYTHON:
        return []
    # --steps 0: the whole program, instead of the few training steps that a plan needs.
    return [str(Path(_BUILD) / "bin" / "tidemark"), "plan", "--steps", "0", *plan_options, "--"]


def run_on_gpu(program: str, folder: Path, *, fits: bool = True, path: Sequence[str] = (), **environment: str) -> str:
    """What the program prints; it runs in ``folder`` and has to end well, and to fit the GPU unless ``fits`` says otherwise.

    It may import from the folders of ``path``. It compiles nothing: on a phantom GPU it starts by tests/startup/no_compiler.
    """
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [*on_gpu("--gpu", "H100-80GB"), GPU_PYTHON, "program.py"]
    startup = [] if _REAL_PYTHON else [str(_STARTUP)]
    path = [*startup, *path, os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(path)}
    ran = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    assert ran.returncode == (0 if fits or _REAL_PYTHON else 1), ran.stdout + ran.stderr
    return ran.stdout + ran.stderr
