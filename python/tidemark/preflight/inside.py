"""What runs in the program: its data loaders give their longest batches first, and the program ends after them.

The schedule counts optimizer steps, not batches: programs read ahead, and accumulate gradients over several batches. All ranks
count the same steps, so they end at the same one, whichever batches they have.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tidemark._torch import require_torch
from tidemark.memory_manager.cuda_counters import memory_limit
from tidemark.memory_manager.out_of_memory import is_out_of_memory
from tidemark.step_guard.longest_batch import LongestBatch, loader_of, longest_batches

# Optimizer steps with the batch with the most scores: the first creates the optimizer's state, the second runs with it.
_FIRST_STEPS = 2
# Optimizer steps with the batch with the most tokens: one more, for batches that were read ahead.
_SECOND_STEPS = 3
# Batches of a loop without a backward pass, an evaluation: each of both again, for a loop that reads ahead.
_EVALUATION_BATCHES = 4
# The same in a loop that does not say so by torch.no_grad(): it may collect batches for one optimizer step first.
_COLLECTED_BATCHES = 64
# Batches of a training whose optimizer is none of torch.optim.
_BATCHES_WITHOUT_STEPS = 256


def begin(loaders: Any, options: str) -> None:
    """Change the loaders of the module ``torch.utils.data.dataloader``. ``options``: JSON of folder, epochs and seconds."""
    session = Session(**json.loads(options))
    original = loaders.DataLoader.__iter__

    def longest_first(loader: Any) -> Iterator[Any]:
        return session.iterate(loader, original)

    loaders.DataLoader.__iter__ = longest_first
    session.watch_errors()


class Session:
    """The preflight of one process."""

    def __init__(self, folder: str, epochs: int, seconds: float) -> None:
        self._folder = Path(folder)
        self.epochs = epochs
        self._seconds = seconds
        self._process = os.getpid()
        self._loaders: dict[int, _Loader] = {}
        self._error: str | None = None
        self._ran_out = False
        self._is_counting = False
        self._steps_of: dict[int, int] = {}
        self.backwards = 0
        #: The last one that was asked for a batch.
        self.latest: _Loader | None = None

    @property
    def steps(self) -> int:
        """Steps of the optimizer that has made the most."""
        return max(self._steps_of.values(), default=0)

    def iterate(self, loader: Any, original: Any) -> Iterator[Any]:
        if os.getpid() != self._process:  # a process that the program has forked
            return original(loader)  # type: ignore[no-any-return]
        self._count()
        known = self._loaders.get(id(loader))
        if known is None:
            known = self._loaders[id(loader)] = _Loader(self, loader, len(self._loaders) + 1)
            known.find(self._seconds)
            self._write("killed")  # replaced when it ends
        return _Batches(known, original(loader) if known.longest is None else None)

    def _count(self) -> None:
        """Count backward passes and optimizer steps from now on."""
        if self._is_counting:
            return
        self._is_counting = True
        torch = require_torch("preflight")
        backward = torch.autograd.backward

        def counted(*arguments: Any, **named: Any) -> Any:
            self.backwards += 1
            return backward(*arguments, **named)

        torch.autograd.backward = counted

        def stepped(optimizer: Any, *_: Any) -> None:
            self._steps_of[id(optimizer)] = self._steps_of.get(id(optimizer), 0) + 1

        with suppress(ImportError):  # not before PyTorch 2.0
            from torch.optim.optimizer import register_optimizer_step_post_hook

            register_optimizer_step_post_hook(stepped)

    def end_if_complete(self) -> None:
        """End the program if all loaders that it trains with have given their longest batches."""
        training = [one for one in self._loaders.values() if one.is_training]
        if training and all(one.is_complete for one in training):
            cuda = require_torch("preflight").cuda
            if cuda.is_initialized():
                cuda.synchronize()  # the other ranks' collectives wait for this one's
            self._write("complete")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def watch_errors(self) -> None:
        hook = sys.excepthook

        def noted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self._error = "".join(traceback.format_exception_only(kind, error)).strip()
            self._ran_out = is_out_of_memory(error)
            hook(kind, error, trace)

        sys.excepthook = noted
        atexit.register(self._write_at_exit)

    def _write_at_exit(self) -> None:
        if self._loaders and os.getpid() == self._process:
            self._write("program" if self._error is None else "error")

    def _write(self, ended: str) -> None:
        """Write the results of this process, for ``report``."""
        devices = _devices()
        result = {
            "rank": int(os.environ.get("RANK", "0")),
            "world_size": int(os.environ.get("WORLD_SIZE", "1")),
            "pid": self._process,
            "ended": ended,
            "error": self._error,
            "out_of_memory": self._ran_out or any(device["failures"] for device in devices),
            "steps": self.steps,
            "loaders": [loader.result() for loader in self._loaders.values()],
            "devices": devices,
        }
        path = self._folder / f"{self._process}.json"
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(result), encoding="utf-8")
        unfinished.replace(path)


class _Loader:
    """One of the program's data loaders."""

    def __init__(self, session: Session, loader: Any, number: int) -> None:
        self.session = session
        self.loader = loader  # kept, so that no other one gets its id
        self.longest: tuple[LongestBatch, LongestBatch] | None = None
        self.given = [0, 0]  # how often each has been given
        self.batches_as_they_are = 0
        self._number = number
        self._problem: str | None = None
        self._steps = session.steps
        self._backwards = session.backwards
        self._has_trained = False

    def find(self, seconds: float) -> None:
        try:
            self.longest = longest_batches(loader_of(self.loader, {}), None, self.session.epochs, seconds)
        except Exception as error:  # the program may be able to use such a loader
            self._problem = str(error) or type(error).__name__

    @property
    def is_training(self) -> bool:
        """Whether backward passes have run between two batches of a loop over it, or after the program's last batch."""
        return self._has_trained or (self.session.backwards > self._backwards and self.session.latest is self)

    @property
    def is_complete(self) -> bool:
        steps = self.session.steps - self._steps
        if steps == 0:
            return sum(self.given) + self.batches_as_they_are >= _BATCHES_WITHOUT_STEPS
        return steps >= _FIRST_STEPS + _SECOND_STEPS

    def start(self) -> None:
        """A loop over it begins."""
        self._backwards = self.session.backwards

    def ask(self) -> None:
        """The loop asks for a batch."""
        self._has_trained = self._has_trained or self.session.backwards > self._backwards
        self._backwards = self.session.backwards

    def next(self) -> Any:
        assert self.longest is not None
        tokens, scores = self.longest
        place = sum(self.given) % 2
        if self.is_training:
            place = int(self.session.steps - self._steps >= _FIRST_STEPS)
        self.given[place] += 1
        batch = (scores, tokens)[place].load()
        torch = require_torch("preflight")
        if self.loader.pin_memory and torch.cuda.is_available():
            batch = torch.utils.data._utils.pin_memory.pin_memory(batch)
        return batch

    def result(self) -> dict[str, Any]:
        batches = _length(getattr(self.loader, "batch_sampler", None))
        found: dict[str, Any] = {
            "number": self._number,
            "training": self.is_training,
            "problem": self._problem,
            "batches": None if batches is None else batches * self.session.epochs,
            "longest": [],
        }
        if self.longest is not None:
            tokens, scores = self.longest
            for batch, given in zip((scores, tokens), self.given):
                found["longest"].append(
                    {
                        "epoch": batch.epoch,
                        "number": batch.number,
                        "samples": batch.shape.samples,
                        "length": batch.shape.length,
                        "compared": batch.compared,
                        "given": given,
                    }
                )
        return found


class _Batches:
    """A loop over a loader, until the program ends: its longest batches again and again, or the batches as they are.

    An evaluation goes on after a few of them.
    """

    def __init__(self, known: _Loader, as_they_are: Iterator[Any] | None) -> None:
        self._known = known
        self._as_they_are = as_they_are
        self._given = 0
        known.start()

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self._known.loader)

    def __next__(self) -> Any:
        known, session = self._known, self._known.session
        if self._given:
            known.ask()
        if not known.is_training and self._as_they_are is None and self._is_evaluated():
            raise StopIteration
        session.end_if_complete()
        session.latest = known
        self._given += 1
        if self._as_they_are is None:
            return known.next()
        known.batches_as_they_are += 1
        return next(self._as_they_are)

    def _is_evaluated(self) -> bool:
        """Whether a loop without backward passes has seen the longest batches."""
        most = _COLLECTED_BATCHES if require_torch("preflight").is_grad_enabled() else _EVALUATION_BATCHES
        return self._given >= min(most, _length(self._known.loader) or most)


def _length(batches: Any) -> int | None:
    try:
        return len(batches)
    except (TypeError, NotImplementedError):
        return None


def _devices() -> list[dict[str, Any]]:
    """What this process took of each CUDA device that it used, in bytes."""
    cuda = require_torch("preflight").cuda
    found: list[dict[str, Any]] = []
    if not cuda.is_initialized():
        return found
    for number in range(cuda.device_count()):
        peak = cuda.max_memory_allocated(number)
        if peak:
            found.append(
                {
                    "number": number,
                    "name": cuda.get_device_name(number),
                    "allocated": peak,
                    "reserved": cuda.max_memory_reserved(number),
                    "available": memory_limit(number),
                    "failures": cuda.memory_stats(number).get("num_ooms", 0),
                }
            )
    return found
