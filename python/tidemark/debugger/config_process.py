"""The process of one configuration: runs the function and writes its measurement to a file."""

from __future__ import annotations

import gc
import pickle
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

from tidemark._errors import TidemarkError
from tidemark._program import find_program
from tidemark._resident import forget_resident_peak, peak_resident_bytes, resident_bytes
from tidemark._sizes import MIB, to_mb
from tidemark._torch import torch_if_installed, torch_if_loaded

_loading_script = False


class _ScriptLoaded(BaseException):
    """The main script has reached ``compare_configs``: the function needs only the definitions before it."""


def stop_loading_the_script() -> None:
    """Ends the loading of a main script in a configuration's process, so that scripts need no ``if __name__ == "__main__"``."""
    if _loading_script:
        raise _ScriptLoaded


def measurement(
    *,
    ok: bool,
    error: str | None = None,
    out_of_memory: bool = False,
    seconds: float | None = None,
    cuda: tuple[int, int] | None = None,
    resident: int | None = None,
) -> dict[str, Any]:
    """The result of a run; ``cuda`` has the peaks of allocated and reserved bytes, ``resident`` growth."""
    allocated, reserved = cuda or (None, None)
    return {
        "memory_mb": to_mb(resident if allocated is None else allocated),
        "measured_by": "resident" if allocated is None else "torch.cuda",
        "max_allocated_mb": to_mb(allocated),
        "max_reserved_mb": to_mb(reserved),
        "resident_mb": to_mb(resident),
        "seconds": seconds,
        "ok": ok,
        "out_of_memory": out_of_memory,
        "error": error,
    }


def run(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], answer: str) -> None:
    """Calls the function and writes the measurement, even if it fails."""
    forget_resident_peak()  # imports may have had a higher peak
    before, held = resident_bytes(), _cuda_held()
    began = time.perf_counter()
    error: str | None = None
    out_of_memory = False
    try:
        fn(*args, **kwargs)
    except BaseException as problem:  # also SystemExit and KeyboardInterrupt: the other configurations must run
        traceback.print_exc()
        error = f"{type(problem).__name__}: {problem}"
        # torch.cuda.OutOfMemoryError came with 1.13; the CPU's allocator raises a RuntimeError.
        out_of_memory = (
            isinstance(problem, MemoryError)
            or type(problem).__name__ == "OutOfMemoryError"
            or "out of memory" in str(problem)
            or "not enough memory" in str(problem)
        )
    seconds = time.perf_counter() - began
    peak = peak_resident_bytes()
    growth = None if before is None or peak is None else max(peak - before, 0)
    measured = measurement(
        ok=error is None, error=error, out_of_memory=out_of_memory, seconds=seconds, cuda=_cuda_peaks(), resident=growth
    )
    if measured["measured_by"] == "torch.cuda":
        measured["memory_mb"] -= held / MIB
    Path(answer).write_bytes(pickle.dumps(measured))


def _cuda() -> Any | None:
    """``torch.cuda`` if this process uses it."""
    torch: Any = torch_if_loaded()
    return torch.cuda if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized() else None


def _cuda_held() -> int:
    """Bytes held by the main script on the GPUs before the function; resets their peaks."""
    cuda = _cuda()
    if cuda is None:
        return 0
    gc.collect()
    cuda.empty_cache()
    devices = range(cuda.device_count())
    for device in devices:
        cuda.reset_peak_memory_stats(device)
    return sum(map(cuda.memory_allocated, devices))


def _cuda_peaks() -> tuple[int, int] | None:
    cuda = _cuda()
    if cuda is None:
        return None
    devices = range(cuda.device_count())
    return sum(map(cuda.max_memory_allocated, devices)), sum(map(cuda.max_memory_reserved, devices))


def run_forked(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], answer: str) -> None:
    """``run`` in a fork: OpenMP's threads do not exist there, so PyTorch gets one, as in a DataLoader's workers."""
    torch: Any = torch_if_loaded()
    if torch is not None:
        torch.set_num_threads(1)
    run(fn, args, kwargs, answer)


def main(job_file: str, answer: str) -> None:
    """The program of the new interpreter."""
    setup = pickle.loads(Path(job_file).read_bytes())
    sys.path[:] = setup["path"]
    if setup["script"] is not None:
        _load_main(setup["script"])
    fn, args, kwargs = pickle.loads(setup["job"])
    run(fn, args, kwargs, answer)


def _load_main(script: str) -> None:
    """Makes definitions of the caller's ``__main__`` importable as ``__main__`` here, without running code after the call."""
    global _loading_script
    loaded = ModuleType("__mp_main__")
    loaded.__file__ = script
    sys.modules["__mp_main__"] = sys.modules["__main__"] = loaded
    _loading_script = True
    try:
        exec(compile(Path(script).read_bytes(), script, "exec"), loaded.__dict__)
    except _ScriptLoaded:
        pass
    finally:
        _loading_script = False


def recorder_command(recording: Path) -> list[str]:
    """The command prefix for counting CPU tensors; empty with a GPU, where PyTorch's counters are used."""
    torch: Any = torch_if_installed()
    if torch is None or torch.cuda.is_available():
        return []
    try:
        return [find_program(), "run", "--quiet", "-o", str(recording), "--"]
    except TidemarkError:
        return []


def recorded_peak(recording: Path) -> int | None:
    """The peak of CPU tensors in a recording, in bytes; None without a recording, or if it is damaged."""
    from tidemark.reading.run import read

    try:
        devices = read(recording, blocks=False, progress=False).summary().devices
    except TidemarkError:
        return None
    return next((device.peak_allocated_bytes for device in devices if device.device == "cpu"), None)
