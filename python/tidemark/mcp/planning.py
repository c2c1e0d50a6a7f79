"""The tool ``plan``: runs a program of the folder with ``tidemark plan``. Only available with ``--allow-plan``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from tidemark._errors import TidemarkError
from tidemark._program import find_program
from tidemark.mcp.answers import answer
from tidemark.mcp.folder import Folder
from tidemark.mcp.printable import printable

if TYPE_CHECKING:
    from anyio.abc import Process

DEFAULT_TIMEOUT_S = 600
MAX_TIMEOUT_S = 3600

_MAX_OUTPUT = 4 << 20  # bytes of the plan's JSON
_KEPT_MESSAGES = 4000  # the last characters of the program's messages
_PATIENCE_S = 5  # until a program that was told to end is killed

NAME = "plan"
DESCRIPTION = (
    "How much memory a Python program of the folder would take on a simulated GPU, and whether it fits. RUNS the program, "
    "with all the rights of the user, for a few training steps. JSON of `tidemark plan`; its recording stays in the folder."
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "program": {"type": "string", "description": "Python program: its path from the server's folder"},
        "arguments": {"type": "array", "items": {"type": "string"}, "maxItems": 100, "description": "The program's arguments"},
        "gpu": {"type": "string", "description": "GPU to plan for, such as A100-40GB, H100-80GB or L4; auto: of this machine"},
        "memory": {"type": "string", "description": "Memory of each device if it is not that of the GPU, such as 24GiB"},
        "steps": {"type": "integer", "minimum": 0, "description": "Training steps to run; 0: to the program's end"},
        "devices": {"type": "integer", "minimum": 1, "description": "GPUs that the program finds"},
        "nproc": {"type": "integer", "minimum": 1, "maximum": 16, "description": "Ranks to start, by torch.distributed.run"},
        "timeout_s": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TIMEOUT_S,
            "description": f"Seconds after which the program is ended [default: {DEFAULT_TIMEOUT_S}]",
        },
    },
    "required": ["program", "gpu"],
    "additionalProperties": False,
}

_running: set[int] = set()  # process groups


def end_all() -> None:
    """Kills the running programs, because this process ends."""
    for group in _running:
        _signal(group, signal.SIGKILL)


def command(folder: Folder, python: str, arguments: dict[str, Any]) -> list[str]:
    """The words of the command line. TidemarkError for a program outside the folder."""
    file = folder.open(arguments["program"])
    program = Path(folder.path, file.path)
    file.close()
    gpu = arguments["gpu"]
    # The name of an existing file would be read as a description of a GPU.
    if not gpu or "/" in gpu or gpu.startswith("-") or os.path.lexists(Path(folder.path, gpu)):
        raise TidemarkError(f"gpu: {printable(gpu)} is no name of a GPU, such as A100-40GB")
    words = [find_program(), "plan", "--format", "json", f"--python={python}", f"--gpu={gpu}"]
    words += [f"--{name}={arguments[name]}" for name in ("memory", "steps", "devices", "nproc") if name in arguments]
    return [*words, "--", python, str(program), *arguments.get("arguments", [])]


async def plan(folder: Folder, python: str, arguments: dict[str, Any]) -> str:
    """The plan, as an answer. The program and its processes end with this call, after the time limit, or when the call is
    cancelled.
    """
    limit = arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
    try:
        process = await anyio.open_process(
            command(folder, python, arguments),
            cwd=folder.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
        raise TidemarkError(f"{printable(arguments['program'])}: `tidemark plan` does not start: {error}") from None
    _running.add(process.pid)
    output = bytearray()
    messages = bytearray()
    try:
        with anyio.move_on_after(limit) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(_keep_last, process, messages)
                await _read(process, output)
                await process.wait()
                group.cancel_scope.cancel()  # remaining processes may hold its stderr open
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
        _running.discard(process.pid)
    if scope.cancelled_caught:
        raise TidemarkError(f"{printable(arguments['program'])}: ended after {limit} s; a larger timeout_s gives it more time")
    if len(output) > _MAX_OUTPUT:
        raise TidemarkError(f"{printable(arguments['program'])}: its plan is larger than {_MAX_OUTPUT} bytes")
    if process.returncode not in (0, 1):  # 1: it does not fit
        said = printable(messages.decode("utf-8", "replace")[-_KEPT_MESSAGES:])
        raise TidemarkError(f"{printable(arguments['program'])}: `tidemark plan` ended with {process.returncode}: {said}")
    document: dict[str, Any] = json.loads(output)
    return answer(document)


async def _read(process: Process, output: bytearray) -> None:
    assert process.stdout is not None
    async for chunk in process.stdout:
        output += chunk
        if len(output) > _MAX_OUTPUT:
            _signal(process.pid, signal.SIGKILL)
            return


async def _keep_last(process: Process, messages: bytearray) -> None:
    assert process.stderr is not None
    async for chunk in process.stderr:
        messages += chunk
        del messages[: -4 * _KEPT_MESSAGES]


async def _end(process: Process) -> None:
    """Ends the process and its children."""
    if process.returncode is None:
        _signal(process.pid, signal.SIGTERM)
        with anyio.move_on_after(_PATIENCE_S):
            await process.wait()
    _signal(process.pid, signal.SIGKILL)
    await process.aclose()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
