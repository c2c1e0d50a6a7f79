"""Runs a program once for each rank of a job on this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import tidemark

HERE = Path(__file__).parent


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def run_ranks(script: str, count: int, *, compiles: bool = False) -> list[dict[str, Any]]:
    """For each rank what it printed, JSON objects in lines, in one; and ``stderr``. Each has to end with exit code 0.

    Unless it ``compiles``, or imports PyTorch's compiler, it starts by tests/startup/no_compiler.
    """
    startup = HERE.parents[1] / "tests" / "startup"
    package, fast = str(Path(str(tidemark.__file__)).parents[1]), str(startup if compiles else startup / "no_compiler")
    job = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "OMP_NUM_THREADS": "1"}
    job["PYTHONPATH"] = os.pathsep.join([fast, package, os.environ.get("PYTHONPATH", "")])
    running = [
        subprocess.Popen(
            [sys.executable, str(HERE / script)],
            env={**os.environ, **job, "RANK": str(rank)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in range(count)
    ]
    told: list[dict[str, Any]] = []
    try:
        for process in running:
            printed, said = process.communicate(timeout=300)
            assert process.returncode == 0, said
            told.append({"stderr": said})
            for line in printed.splitlines():
                if line.startswith("{"):
                    told[-1].update(json.loads(line))
    finally:
        for process in running:
            process.kill()
    return told
