"""A job on several machines while it runs: the report of ``tidemark distributed``, from inside a program or beside it."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Union

from tidemark._errors import TidemarkError
from tidemark._program import find_program

PathLike = Union[str, "os.PathLike[str]"]

_PATIENCE = 30.0  # seconds for a report

_MISUSE = 2  # exit code of the program for options and connections that do not work


def job_report(job: str | None = None, **connection: Any) -> dict[str, Any]:
    """Ask the master of a job for its report now: ``tidemark job --format json``.

    ``connection``: how to reach the master, as options of ``tidemark job``: ``master_host``, ``port``, ``state``,
    ``token_file``, ``nats``, ``creds``. Without them, it is found by the job's folder. Raises TidemarkError if the master does
    not answer.
    """
    return _ask_master(job, connection)


def job_command(command: str, ranks: Sequence[int] = (), job: str | None = None, **connection: Any) -> dict[str, Any]:
    """Give all ranks of a job, or these, a command: ``"record dump"``. All of them do it, or none begins.

    Returns what each rank answered: the JSON of ``tidemark job --command``, whose ``state`` is ``"done"``, ``"refused"`` or
    ``"failed"``. ``connection``: as of job_report(). Raises TidemarkError if the master does not answer.
    """
    options: dict[str, Any] = {"command": command}
    if ranks:
        options["ranks"] = ",".join(map(str, ranks))
    return _ask_master(job, {**options, **connection})


def _ask_master(job: str | None, options: dict[str, Any]) -> dict[str, Any]:
    arguments = [find_program(), "job", "--format", "json"]
    for name, value in {"job": job, **options}.items():
        if value is not None:
            arguments += ["--" + name.replace("_", "-"), str(value)]
    ended = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if ended.returncode >= _MISUSE or ended.returncode < 0:
        raise TidemarkError(_last_message(ended.stderr.decode(errors="replace"), "tidemark job has failed"))
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def _last_message(said: str, otherwise: str) -> str:
    lines = said.strip().splitlines()
    return lines[-1].removeprefix("tidemark: ") if lines else otherwise


class DistributedMemoryMonitor:
    """Watches a job on this machine, or on several: the report of ``tidemark distributed``.

    A helper process does it, which ends with this program: a master (``role="master"``) compares all nodes, a worker sends the
    state of its node. Without a role, the ranks of this machine are compared. Forked children do not watch.
    """

    def __init__(
        self,
        role: str | None = None,
        master_host: str | None = None,
        port: int = 29500,
        sampling_interval: float = 1.0,
        *,
        job: str | None = None,
        node: str | None = None,
        token_file: PathLike | None = None,
        state: PathLike | None = None,
        devices: Sequence[str | int] = (),
    ) -> None:
        """The arguments are the options of ``tidemark distributed``."""
        options: dict[str, Any] = {
            "--role": role, "--master-host": master_host, "--port": port, "--interval": sampling_interval, "--job": job,
            "--node": node, "--token-file": token_file, "--state": state,
        }  # fmt: skip
        self._arguments: list[str] = []
        for name, value in options.items():
            if value is not None:
                self._arguments += [name, str(value)]
        if devices:
            self._arguments += ["--devices", *map(str, devices)]
        self._is_worker = role == "worker" or (role is None and master_host is not None)
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._folder: Path | None = None
        self._last: bytes | None = None

    @property
    def monitoring(self) -> bool:
        """Whether it is watching."""
        return self._process is not None and self._owner == os.getpid() and self._process.poll() is None

    def start_monitoring(self) -> None:
        """Start watching, and restart if it was stopped; no effect if it is watching already."""
        if self.monitoring:
            return
        self._remove_folder()
        self._folder = Path(tempfile.mkdtemp(prefix="tidemark-job-"))
        output = [] if self._is_worker else ["--output", str(self._report), "--format", "json"]
        # Blocked from its beginning on: a request for a report that comes early waits, instead of ending the process.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        try:
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [find_program(), "distributed", *self._arguments, *output],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env={**os.environ, "TIDEMARK_END_WITH_PARENT": "1"},
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self._owner = os.getpid()
        self._last = None
        atexit.register(self.stop_monitoring)
        time.sleep(0.2)  # what cannot be watched is said at once
        if self._process.poll() is not None:
            raise self._failed()

    def stop_monitoring(self) -> None:
        """Stop, and tell the coordinator. The report can still be generated. No effect if it is stopped."""
        atexit.unregister(self.stop_monitoring)
        if self._process is None or self._owner != os.getpid():
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._folder is not None and self._report.exists():
            self._last = self._report.read_bytes()
        self._remove_folder()

    def generate_report(self, path: PathLike | None = None) -> dict[str, Any]:
        """The data since the start, in the command's JSON format; also written to ``path``. Also available while it watches.

        Raises TidemarkError if it was never started, on a worker, whose report is the master's, and if the helper process has
        failed; OSError if the file cannot be written.
        """
        if self._is_worker:
            raise TidemarkError("the report is the master's: this is a worker")
        if self._process is None or self._owner != os.getpid():
            raise TidemarkError("start_monitoring() was not called")
        text = self._ask() if self.monitoring else self._last
        if text is None:
            raise self._failed()
        if path is not None:
            Path(path).write_bytes(text)
        report: dict[str, Any] = json.loads(text)
        return report

    def __enter__(self) -> DistributedMemoryMonitor:
        self.start_monitoring()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop_monitoring()

    @property
    def _report(self) -> Path:
        assert self._folder is not None
        return self._folder / "report.json"

    @property
    def _errors(self) -> Path:
        assert self._folder is not None
        return self._folder / "errors"

    def _ask(self) -> bytes | None:
        """The report of now; None: the process has ended."""
        assert self._process is not None
        self._report.unlink(missing_ok=True)  # the program renames a complete file to it
        self._process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + _PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                return self._report.read_bytes()
            except FileNotFoundError:
                time.sleep(0.02)
        return None

    def _failed(self) -> TidemarkError:
        said = self._errors.read_text(errors="replace") if self._folder is not None else ""
        return TidemarkError(_last_message(said, "tidemark distributed has ended"))

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
