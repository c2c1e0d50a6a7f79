"""The memory of this process as scalars, and writing them to a training's loggers."""

from __future__ import annotations

from typing import Any

from tidemark._resident import resident_bytes
from tidemark._sizes import MIB
from tidemark._torch import torch_if_loaded


def memory_scalars(reset_peaks: bool = False) -> dict[str, float]:
    """MiB by name, for every CUDA device that this process uses: ``memory/cuda:0/peak_mib`` (peak allocated memory since the
    start, or since the peaks were reset), ``…/allocated_mib``, ``…/reserved_mib``; and ``memory/rss_mib``, the process's
    resident memory, if Linux reports it.

    ``reset_peaks`` makes each peak that since the previous call. PyTorch has one peak for the whole program: other code that
    reads ``max_memory_allocated`` sees it reset, too.
    """
    found: dict[str, float] = {}
    torch = torch_if_loaded()
    if torch is not None and torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            if torch.cuda.max_memory_reserved(device) == 0:  # used by another rank
                continue
            name = f"memory/cuda:{device}"
            found[f"{name}/peak_mib"] = torch.cuda.max_memory_allocated(device) / MIB
            found[f"{name}/allocated_mib"] = torch.cuda.memory_allocated(device) / MIB
            found[f"{name}/reserved_mib"] = torch.cuda.memory_reserved(device) / MIB
            if reset_peaks:
                torch.cuda.reset_peak_memory_stats(device)
    resident = resident_bytes()
    if resident is not None:
        found["memory/rss_mib"] = resident / MIB
    return found


def write_scalars(writer: Any, scalars: dict[str, float], step: int) -> None:
    """Write the scalars of a step to TensorBoard (``SummaryWriter``), Weights & Biases (``wandb`` or a run), any other object
    with ``log(dict, step=…)``, a function ``(scalars, step)``, or a list of these. ``None`` writes nothing.

    Raises ``TypeError`` for another kind of writer.
    """
    if writer is None:
        return
    if isinstance(writer, (list, tuple)):
        for each in writer:
            write_scalars(each, scalars, step)
    elif hasattr(writer, "add_scalar"):
        for name, value in scalars.items():
            writer.add_scalar(name, value, step)
    elif hasattr(writer, "log"):
        writer.log(scalars, step=step)
    elif callable(writer):
        writer(scalars, step)
    else:
        raise TypeError(
            f"{type(writer).__name__} is no writer of scalars: pass a SummaryWriter, wandb, or a function (scalars, step)"
        )
