"""Runs programs on a GPU: a simulated one (real calls of torch.cuda under ``tidemark plan``), or a real one.

TIDEMARK_GPU_PYTHON is the interpreter of a machine that has a GPU. If it is not set, TIDEMARK_PHANTOM_PYTHON is one with
PyTorch for CUDA, and TIDEMARK_BUILD the folder (build/<preset>) of the program that plans.
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
    """The command prefix that runs a program on a GPU: ``tidemark plan`` and these options; empty on a real one."""
    if _REAL_PYTHON:
        return []
    # --steps 0: the whole program, instead of the few training steps that a plan needs.
    return [str(Path(_BUILD) / "bin" / "tidemark"), "plan", "--steps", "0", *plan_options, "--"]


def run_on_gpu(program: str, folder: Path, *, fits: bool = True, path: Sequence[str] = (), **environment: str) -> str:
    """The output of the program; it runs in ``folder``, must exit with 0, and must fit the GPU unless ``fits`` is false.

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
