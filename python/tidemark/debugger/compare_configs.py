"""``tidemark.compare_configs``: runs a function under several configurations, each in its own process, and compares peaks."""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

from tidemark._errors import TidemarkError
from tidemark._sizes import to_mb
from tidemark._torch import torch_if_installed
from tidemark.debugger import config_process
from tidemark.debugger.log import debug_logger
from tidemark.debugger.result import Result


def compare_configs(fn: Callable[..., Any], configs: Mapping[str, Any], *, timeout_s: float | None = None) -> Result:
    """Run ``fn`` with each configuration in its own process; a failure does not stop the others.

    ``fn`` gets a configuration as keywords if it accepts all of its keys, else as its only argument. Returns, by name:

    - ``memory_mb``: the peak, less the memory that the main script already holds on GPUs, and ``measured_by``: "torch.cuda"
      (the peak of its counters, all devices), "recording" (CPU tensors, by a Tidemark recording) or "resident" (growth of the
      process); for a failed run the peak until then;
    - ``max_allocated_mb`` and ``max_reserved_mb`` of CUDA, ``resident_mb``, ``seconds``;
    - ``ok``, ``out_of_memory``, ``error`` (None, or the exception's text) and ``config``.

    A function that can be pickled gets a fresh process; its module is imported there, the main script up to the call of
    ``compare_configs``. Others, such as closures, are forked, which CUDA allows only before it is initialized: else
    TidemarkError.
    """
    config_process.stop_loading_the_script()
    results = Result()
    for name, config in configs.items():
        args, kwargs = _arguments(fn, config)
        result = _run(fn, args, kwargs, timeout_s)
        result["config"] = config
        results[str(name)] = result
        memory = "n/a" if result["memory_mb"] is None else f"{result['memory_mb']:.2f}MB"
        debug_logger().info("%s: %s%s", name, memory, f" until it failed ({result['error']})" if result["error"] else "")
    return results


def _arguments(fn: Callable[..., Any], config: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(config, Mapping) and all(isinstance(key, str) for key in config):
        try:
            inspect.signature(fn).bind(**config)
            return (), dict(config)
        except (TypeError, ValueError):
            pass
    return (config,), {}


def _run(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], timeout_s: float | None) -> Result:
    try:
        job = pickle.dumps((fn, args, kwargs))
    except (pickle.PicklingError, AttributeError, TypeError) as problem:
        torch: Any = torch_if_installed()
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            raise TidemarkError(
                f"compare_configs: {fn!r} cannot be sent to another process ({problem}), and this one cannot be forked, as "
                "CUDA is initialized; define the function at the top of a module, or call before anything uses the GPU"
            ) from problem
        return _forked(fn, args, kwargs, timeout_s)
    with tempfile.TemporaryDirectory(prefix="tidemark-config-") as folder:
        return _fresh(job, Path(folder), timeout_s)


def _fresh(job: bytes, folder: Path, timeout_s: float | None) -> Result:
    """Runs in a new interpreter, recorded if there is no GPU and the tidemark program is installed."""
    answer, recording = folder / "answer.pickle", folder / "run.tide"
    main = sys.modules["__main__"]
    # The script is run again only if it defines the function or a configuration.
    script = getattr(main, "__file__", None) if b"__main__" in job else None
    setup = {"path": sys.path, "script": script, "job": job}
    (folder / "job.pickle").write_bytes(pickle.dumps(setup))
    code = "import sys; sys.path[:0] = sys.argv[3:]; from tidemark.debugger.config_process import main; main(*sys.argv[1:3])"
    package = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", code, str(folder / "job.pickle"), str(answer), package]
    recorder = config_process.recorder_command(recording)
    status = _wait(subprocess.Popen([*recorder, *command]), timeout_s)
    result = _answer(answer, status)
    if recorder and result["measured_by"] == "resident":
        peak = config_process.recorded_peak(recording)
        if peak is not None:
            result.update(memory_mb=to_mb(peak), measured_by="recording")
    return result


def _wait(process: subprocess.Popen[bytes], timeout_s: float | None) -> int | str:
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return f"it took more than {timeout_s:g} s"


def _forked(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], timeout_s: float | None) -> Result:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise TidemarkError(f"compare_configs: {fn!r} cannot be sent to another process; define it at the top of a module")
    with tempfile.TemporaryDirectory(prefix="tidemark-config-") as folder:
        answer = Path(folder) / "answer.pickle"
        child = multiprocessing.get_context("fork").Process(
            target=config_process.run_forked, args=(fn, args, kwargs, str(answer))
        )
        child.start()
        child.join(timeout_s)
        if child.is_alive():
            child.terminate()
            child.join()
            return _answer(answer, f"it took more than {timeout_s:g} s")
        return _answer(answer, child.exitcode or 0)


def _answer(path: Path, status: int | str) -> Result:
    """The measurement of the process; if there is none, how the process ended."""
    if path.exists():
        measured: dict[str, Any] = pickle.loads(path.read_bytes())
        return Result(measured)
    died = status if isinstance(status, str) else f"the process ended with status {status}"
    killed = isinstance(status, int) and abs(status) in (signal.SIGKILL, 128 + signal.SIGKILL)
    if isinstance(status, int) and status < 0:
        died = f"the process was ended by {signal.Signals(-status).name}"
    if killed:
        died += "; the kernel does that when the host's memory is used up"
    return Result(config_process.measurement(ok=False, error=died, out_of_memory=killed))
