"""The verdict of ``tidemark restart`` where launchers look for it: torchrun's error file, Kubernetes' termination message.

``python -m tidemark.restart recordings/ --error-file "$TORCHELASTIC_ERROR_FILE"`` does it after a job has ended;
``error_handler()`` in the failing worker. Nothing here starts a job again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

from tidemark._errors import TidemarkError
from tidemark._program import find_program
from tidemark.reading.from_json import from_json
from tidemark.reading.rendering import Rendering

if TYPE_CHECKING:
    from tidemark.reading.results.restart import RestartVerdict

PathLike = Union[str, "os.PathLike[str]"]

#: Kubernetes keeps so many bytes of a container's termination message.
TERMINATION_BYTES = 4096

#: Changes in an error file, which launchers print and keep.
_MOST_CHANGES = 8


def judge_restart(
    recordings: PathLike | Iterable[PathLike], *, simulate: Literal["pytorch", "model", "off"] = "off"
) -> RestartVerdict:
    """The verdict on a job from its recordings, or from a folder of them: which rank ran out of memory first, whether a restart
    does so again and at about which step, and what to change. ``simulate``: as the command's option.

    Raises TidemarkError, which names the file, for files that cannot be read.
    """
    from tidemark.reading.results.restart import RestartVerdict

    paths = [recordings] if isinstance(recordings, (str, os.PathLike)) else list(recordings)
    if not paths:
        raise TidemarkError("judge_restart: name recordings, or a folder of recordings")
    command = [find_program(), "restart", "--format", "json", "--simulate", simulate, *[os.fspath(path) for path in paths]]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        message = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise TidemarkError(
            message[-1].removeprefix("tidemark: ") if message else f"tidemark restart: exit code {done.returncode}"
        )
    written = done.stdout.decode("utf-8", "replace")
    verdict = from_json(RestartVerdict, json.loads(written))
    rendering = Rendering(None, ("json", "text"), {"json": written, "text": message_of(verdict)})
    object.__setattr__(verdict, "_rendering", rendering)  # frozen, and not a field
    return verdict


def message_of(verdict: RestartVerdict) -> str:
    """The verdict in sentences, and a line for each of the first changes."""
    lines = [verdict.message]
    for change in verdict.changes[:_MOST_CHANGES]:
        enough = {True: "enough", None: "may be enough", False: "not enough"}[change.enough]
        lines.append(f"- {change.text} ({enough})")
    if verdict.evidence is not None:
        lines.append(verdict.evidence.message)
    return "\n".join(lines)


def summary_of(verdict: RestartVerdict) -> dict[str, Any]:
    """The part of restart.json that fits into an error file: without the list of ranks, and without stacks."""
    document = json.loads(verdict.to_json())
    keys = ("will_recur", "at_step", "earliest_step", "latest_step", "confidence", "reason", "message", "first", "next_attempt")
    summary = {key: document[key] for key in keys}
    summary["changes"] = [
        {key: value for key, value in change.items() if key != "stack"} for change in document["changes"][:_MOST_CHANGES]
    ]
    return summary


def write_error_file(verdict: RestartVerdict, path: PathLike | None = None) -> bool:
    """Adds the verdict to the error file of a worker of torchrun: to ``message.extraInfo.tidemark``, and as a last line to the
    text that torchrun prints. A file that is missing is made; another key is never changed. ``path``: TORCHELASTIC_ERROR_FILE.

    False if no path is known, or if the file has a form that this does not know, which stays as it is.
    """
    target = os.environ.get("TORCHELASTIC_ERROR_FILE") if path is None else os.fspath(path)
    if not target:
        return False
    text = f"Tidemark: {verdict.message}"
    document: Any
    fresh = {"message": {"message": text, "extraInfo": {"py_callstack": text, "timestamp": str(int(time.time()))}}}
    try:
        document = json.loads(Path(target).read_text())
    except FileNotFoundError:
        document, text = fresh, ""
    except ValueError:
        return False
    message = document.get("message") if isinstance(document, dict) else None
    if isinstance(message, dict) and isinstance(message.get("extraInfo"), dict):
        extra = message["extraInfo"]
        extra["tidemark"] = summary_of(verdict)
        if text and isinstance(extra.get("py_callstack"), str):
            extra["py_callstack"] = extra["py_callstack"].rstrip("\n") + "\n" + text
    elif isinstance(message, str):  # the other form that torchrun reads
        document["tidemark"] = summary_of(verdict)
        document["message"] = message.rstrip("\n") + "\n" + text
    else:
        return False
    folder = Path(target).resolve().parent
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".tidemark-", delete=False) as file:
        json.dump(document, file)
    Path(file.name).replace(target)  # torchrun reads all of it, or what was there before
    return True


def write_termination_message(verdict: RestartVerdict, path: PathLike = "/dev/termination-log") -> None:
    """Writes the verdict as the termination message of a container of Kubernetes, at most 4,096 bytes."""
    message = message_of(verdict).encode()[:TERMINATION_BYTES].decode("utf-8", "ignore")
    Path(path).write_bytes(message.encode())  # not replaced: it is a mount


def _is_out_of_memory(error: BaseException) -> bool:
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower()


def error_handler(recordings: PathLike | Iterable[PathLike], *, patience: float = 10.0) -> Any:
    """An error handler for ``torch.distributed.elastic.multiprocessing.errors.record``, which adds the verdict to the error
    file of a worker that ran out of memory::

        main = record(main, error_handler=tidemark.restart.error_handler("recordings/"))

    The recordings of the other ranks are read as far as they are written. It waits at most ``patience`` seconds for the failure
    to be in the worker's own recording, and never raises: the worker's error stays the error.
    """
    from torch.distributed.elastic.multiprocessing.errors import ErrorHandler

    class Handler(ErrorHandler):  # type: ignore[misc, unused-ignore]
        def record_exception(self, e: BaseException) -> None:
            super().record_exception(e)
            if _is_out_of_memory(e):
                _add_quietly(lambda: judge_restart(recordings), patience)

    return Handler()


def _add_quietly(judge: Callable[[], RestartVerdict], patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            verdict = judge()
            if verdict.first is not None or time.monotonic() >= deadline:
                write_error_file(verdict)
                return
        except (TidemarkError, OSError, ValueError) as error:
            if time.monotonic() >= deadline:
                print(f"tidemark: no verdict on a restart: {error}", file=sys.stderr)
                return
        time.sleep(0.25)


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m tidemark.restart``."""
    description = "Put the verdict on a restart where launchers look for it."
    parser = argparse.ArgumentParser(prog="python -m tidemark.restart", description=description)
    add = parser.add_argument
    add("recordings", nargs="+", metavar="FILE|FOLDER", help="recordings of the job's ranks, or their folder")
    add("-o", "--output", metavar="FILE", help="write restart.json")
    add("--error-file", metavar="FILE", help="add to torchrun's error file (default: TORCHELASTIC_ERROR_FILE)")
    add("--termination-message", metavar="FILE", nargs="?", const="/dev/termination-log", help="write Kubernetes' message")
    add("--simulate", choices=("pytorch", "model", "off"), default="off", help="replay other allocator settings")
    options = parser.parse_args(arguments)
    try:
        verdict = judge_restart(options.recordings, simulate=options.simulate)
        if options.output:
            Path(options.output).write_text(verdict.to_json())
        if options.error_file or os.environ.get("TORCHELASTIC_ERROR_FILE"):
            path = options.error_file or os.environ["TORCHELASTIC_ERROR_FILE"]
            if not write_error_file(verdict, path):
                raise TidemarkError(f'{path}: not an error file of torchrun (expected JSON with "message"); left as it is')
        if options.termination_message:
            write_termination_message(verdict, options.termination_message)
    except (TidemarkError, OSError) as error:
        print(f"tidemark: {error}", file=sys.stderr)
        return 2
    print(message_of(verdict))
    return 0


if __name__ == "__main__":
    sys.exit(main())
