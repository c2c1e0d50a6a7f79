"""Batch sizes planned on a phantom GPU, before the real one is used."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark._logging import package_logger
from tidemark._program import find_program
from tidemark._torch import require_torch
from tidemark.memory_manager.cuda_counters import memory_limit

PLACEHOLDER = "{batch_size}"

# Set in the environment of planned programs.
_VARIABLE = "TIDEMARK_PLANNED_BATCH"
_SECONDS = 900  # of one plan
_MARGIN_SHARE = 0.5
_PROBES = 12


@dataclass(frozen=True)
class PlannedSize:
    """A planned size."""

    batch_size: int
    fits: bool
    #: Peak allocation of PyTorch on the phantom GPU; ``None`` if it did not fit.
    peak_bytes: int | None


def check_command(command: Sequence[str]) -> None:
    """Raises an error if the command cannot start a program."""
    if isinstance(command, str) or not all(isinstance(word, str) for word in command):
        raise ValueError('plan: the program and its arguments as a list, such as ["python", "train.py"]')
    if not any(PLACEHOLDER in word for word in command):
        raise ValueError(f"plan {list(command)!r}: {PLACEHOLDER} has to stand where the program takes its batch size")
    if _VARIABLE in os.environ:
        raise TidemarkError(
            "auto_batch_size: this program is being planned by auto_batch_size(plan=…) itself: with the batch size in its "
            "arguments it has to run a few training steps, and not to search again"
        )


def plan_sizes(
    command: Sequence[str], device: int, *, start: int, maximum: int | None, multiple_of: int, margin: float
) -> list[PlannedSize]:
    """The planned sizes, in order. If the program cannot be planned, the list is empty and the log has the reason."""
    search = _engine.batch_search(start, maximum, multiple_of, margin * _MARGIN_SHARE, _PROBES)
    planned: list[PlannedSize] = []
    try:
        with _planner(command, device) as plan:
            limit = memory_limit(device)
            while (size := _engine.next_batch(search)) is not None:
                planned.append(plan(size))
                _engine.report_batch(search, size, planned[-1].fits, planned[-1].peak_bytes, limit)
    except TidemarkError as error:
        package_logger().warning("auto_batch_size: %s; the sizes are tried on the real GPU alone", error)
        return []
    return planned


@contextmanager
def _planner(command: Sequence[str], device: int) -> Iterator[Any]:
    torch = require_torch("auto_batch_size")
    free, total = torch.cuda.mem_get_info(device)
    room = free + torch.cuda.memory_reserved(device)
    limit = memory_limit(device)
    memory = total

    with tempfile.TemporaryDirectory(prefix="tidemark-batch-") as folder:
        recording = Path(folder) / "plan.tide"

        def plan(size: int) -> PlannedSize:
            nonlocal memory
            arguments = ["plan", "--gpu", "auto", "--memory", str(memory), "--format", "json", "--force", "-o", str(recording)]
            program = [word.replace(PLACEHOLDER, str(size)) for word in command]
            facts = _run([find_program(), *arguments, "--", *program], _environment(device))
            largest = max(facts["devices"], key=lambda one: one["peak_allocated_bytes"])
            # Memory available to tensors here, besides the context, which this process has already. A share limit in PyTorch
            # applies only to tensors: the driver's memory is added to it.
            memory = limit + facts["context_bytes"] + (largest["driver_bytes"] or 0 if limit < room else 0)
            fits = bool(facts["fits"])
            return PlannedSize(size, fits, largest["peak_allocated_bytes"] if fits else None)

        yield plan


def _environment(device: int) -> dict[str, str]:
    """The environment in which ``--gpu auto`` is this device: the first visible one."""
    environment = {**os.environ, _VARIABLE: "1"}
    if device > 0:
        uuid = getattr(require_torch("auto_batch_size").cuda.get_device_properties(device), "uuid", None)
        visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        environment["CUDA_VISIBLE_DEVICES"] = f"GPU-{uuid}" if uuid is not None else (visible or {device: str(device)})[device]
    return environment


def _run(command: list[str], environment: dict[str, str]) -> Any:
    """The JSON output of ``tidemark plan``."""
    running = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        printed, said = running.communicate(timeout=_SECONDS)
    except BaseException as error:
        running.terminate()  # it ends the program, and itself
        running.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise TidemarkError(f"planned, the program made no three training steps in {_SECONDS} s") from error
    try:
        facts = json.loads(printed)
    except ValueError:
        facts = {}
    if running.returncode not in (0, 1) or not facts.get("devices"):
        lines = [line for line in said.splitlines() if line.strip()]
        raise TidemarkError(f"the program cannot be planned (exit code {running.returncode}): " + " / ".join(lines[-3:]))
    return facts
