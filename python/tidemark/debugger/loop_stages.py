"""The stages of a plain training loop, found by PyTorch's hooks: data, forward, backward, optimizer.

A forward pass is the outermost call of a module; the backward pass begins when the gradient of that call's output is computed
and lasts until the optimizer's step, so that clipping is part of it; the optimizer stage is its step; the rest, until the next
forward pass, is data. Times are the host's: on a GPU they are of the launches, not of the kernels. PyTorch's peak counters are
not reset.
"""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from importlib import import_module
from typing import Any, Callable

from tidemark._resident import resident_bytes
from tidemark._sizes import to_mb
from tidemark._torch import torch_if_installed
from tidemark.debugger.result import Result
from tidemark.events.allocator_stats import Counters
from tidemark.events.counters import DeviceCounters


class _Totals:
    """Time and memory of one kind of stage over all steps."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.change: int | None = None
        self.highest: int | None = None

    def add(self, seconds: float, before: int | None, after: int | None, peak: int | None) -> None:
        self.count += 1
        self.seconds += seconds
        if before is not None and after is not None:
            self.change = (self.change or 0) + after - before
        known = [size for size in (self.highest, before, after, peak) if size is not None]
        self.highest = max(known) if known else None

    def result(self, name: str) -> Result:
        return Result(
            stage=name,
            count=self.count,
            seconds=self.seconds,
            memory_change_mb=to_mb(self.change),
            highest_mb=to_mb(self.highest),
        )


class LoopStages:
    """Watches modules and optimizers from ``start()`` to ``stop()``, in the thread that starts it."""

    def __init__(self) -> None:
        self._counters = DeviceCounters()
        self._totals: dict[str, _Totals] = {}
        self._removers: list[Callable[[], None]] = []
        self._depth = 0
        self._stage: str | None = None
        self._since = 0.0
        self._at_start: tuple[int | None, int | None] = (None, None)
        self._backward_running: Callable[[], int] = lambda: -1
        self.steps = 0

    def start(self) -> None:
        """Adds the hooks; does nothing without torch. ``stop()`` removes them."""
        torch: Any = torch_if_installed()
        if torch is None:
            return
        self._thread = threading.get_ident()
        self._backward_running = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # since PyTorch 2.1
        me: weakref.ref[LoopStages] = weakref.ref(self)
        module = torch.nn.modules.module
        parameters = inspect.signature(module.register_module_forward_hook).parameters
        even_if_it_raises = {"always_call": True} if "always_call" in parameters else {}  # since PyTorch 2.1
        compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

        # Dynamo knows `compiling` and leaves these calls out of compiled code; the compiled module's own call arrives here,
        # too.
        def begins(*call: Any) -> None:
            if not compiling():
                _tell(me, "_forward_begins")

        def ends(*call: Any) -> None:
            if not compiling():
                _tell(me, "_forward_ends", call[2])

        hooks = [
            module.register_module_forward_pre_hook(begins),
            module.register_module_forward_hook(ends, **even_if_it_raises),
        ]
        optimizer: Any = import_module("torch.optim.optimizer")
        if hasattr(optimizer, "register_optimizer_step_pre_hook"):  # since PyTorch 2.0
            hooks.append(optimizer.register_optimizer_step_pre_hook(lambda *call: _tell(me, "_enter", "optimizer")))
            hooks.append(optimizer.register_optimizer_step_post_hook(lambda *call: _tell(me, "_step_ends")))
        self._removers = [hook.remove for hook in hooks]

    def stop(self) -> None:
        """Ends the current stage and removes the hooks."""
        self._leave()
        for remove in self._removers:
            remove()
        self._removers = []

    def results(self) -> list[Result]:
        """A row for each stage: ``stage``, ``count``, ``seconds``, ``memory_change_mb``, ``highest_mb``, in order of a step.

        On a GPU, memory is PyTorch's allocated memory on the current device, else the process's resident memory.
        """
        order = ["data", "forward", "backward", "optimizer"]
        return [self._totals[name].result(name) for name in order if name in self._totals]

    def _memory(self) -> tuple[int | None, int | None]:
        """Bytes in use, and the peak so far if it is counted."""
        counters: Counters | None = self._counters.read()
        return (resident_bytes(), None) if counters is None else (counters.allocated, counters.max_allocated)

    def _enter(self, stage: str) -> None:
        self._leave()
        self._stage, self._at_start, self._since = stage, self._memory(), time.perf_counter()

    def _leave(self) -> None:
        if self._stage is not None:
            seconds = time.perf_counter() - self._since
            now, peak = self._memory()
            before, peak_before = self._at_start
            rose = peak if peak is not None and peak_before is not None and peak > peak_before else None
            self._totals.setdefault(self._stage, _Totals()).add(seconds, before, now, rose)
        self._stage = None

    def _forward_begins(self) -> None:
        if self._backward_running() >= 0:
            return  # in autograd's engine it is recomputation, which may end early; on a GPU it runs on a thread of the engine
        self._depth += 1
        if self._depth == 1:
            self._enter("forward")

    def _forward_ends(self, output: Any) -> None:
        if self._backward_running() >= 0:
            return
        self._depth -= 1
        if self._depth > 0 or self._stage != "forward":
            return
        me: weakref.ref[LoopStages] = weakref.ref(self)
        for tensor in _tensors(output):
            if tensor.requires_grad:
                # Called when the gradient of this output is computed; freed with a graph that is never used.
                tensor.register_hook(lambda gradient: _tell(me, "_backward_begins", other_threads=True))

    def _backward_begins(self) -> None:
        if self._stage != "backward":
            self._enter("backward")

    def _step_ends(self) -> None:
        self.steps += 1
        self._enter("data")


def _tell(who: weakref.ref[LoopStages], what: str, *values: Any, other_threads: bool = False) -> None:
    """Calls a method if the watcher still exists, and in its thread; autograd's threads report the backward pass."""
    stages = who()
    if stages is not None and stages._removers and (other_threads or threading.get_ident() == stages._thread):
        getattr(stages, what)(*values)


def _tensors(output: Any) -> list[Any]:
    """The tensors of a module's output: itself, or in the containers that models return."""
    if hasattr(output, "register_hook") and hasattr(output, "requires_grad"):
        return [output]
    if isinstance(output, dict):
        return [tensor for value in output.values() for tensor in _tensors(value)]
    if isinstance(output, (list, tuple)):
        return [tensor for value in output for tensor in _tensors(value)]
    return []
