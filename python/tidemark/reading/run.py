"""Recordings and snapshots in memory, and their analyses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Union, overload

from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark._program import find_program
from tidemark.reading.rendering import Result, make_result
from tidemark.reading.tables import ArrowTable

if TYPE_CHECKING:  # creating each result's classes takes milliseconds: they are imported at their use
    from typing_extensions import Unpack

    from tidemark.reading.results.breakdown import Breakdown
    from tidemark.reading.results.compare import Comparison
    from tidemark.reading.results.explain import Explanation
    from tidemark.reading.results.fragmentation import Fragmentation
    from tidemark.reading.results.leaks import Leaks
    from tidemark.reading.results.ledger import Ledger
    from tidemark.reading.results.patterns import Patterns
    from tidemark.reading.results.simulate import Simulation
    from tidemark.reading.results.summary import JobSummary, Summary
    from tidemark.reading.results.table import Table
    from tidemark.reading.results.temporary import Temporary
    from tidemark.reading.results.timeline import Timeline
    from tidemark.reading.results.tree import Tree

Path = Union[str, "os.PathLike[str]"]
Owner = Literal["category", "component", "layer", "module", "phase", "step"]
Simulate = Literal["auto", "pytorch", "model", "off"]
R = TypeVar("R", bound=Result)

with suppress(TidemarkError):  # few analyses need the program, and report if it is missing
    _engine.use_program(os.fsencode(find_program()))


class Blocks(TypedDict, total=False):
    """Selects the blocks of an analysis."""

    device: str | None  #: "cuda:0"
    module: str | None  #: "layers.3.*": in these modules and their submodules
    component: str | None  #: in this part of the model
    category: str | None  #: "activation", "parameter", ...
    phase: str | None  #: allocated in this part of a training step


@cache
def _formats() -> dict[str, list[str]]:
    return {analysis["name"]: analysis["formats"] for analysis in _engine.analyses()}


def _options(**given: object) -> dict[str, str]:
    """As the engine takes them: ``min_share=0.01`` is ``--min-share 0.01``. None and False are omitted."""
    texts = {}
    for name, value in given.items():
        if value is None or value is False:
            continue
        texts[name.replace("_", "-")] = "yes" if value is True else str(value)
    return texts


class Run:
    """A recording or a PyTorch snapshot in memory: made by ``tidemark.read()``.

    Every analysis is a method with the options of its command, all by keyword; ``docs/commands`` describes them. ``device``,
    ``module``, ``component``, ``category`` and ``phase`` select blocks. An invalid value is a ValueError that lists the allowed
    ones; data missing from the recording (a device, a mark, steps) is a TidemarkError. Sizes are bytes, times nanoseconds from
    the recording's start. Methods can be called from several threads, and release the GIL.
    """

    def __init__(self, handle: _engine.Recording, path: str) -> None:
        self._handle = handle
        self.path = path

    def __repr__(self) -> str:
        return f"<tidemark Run of {self.path}>"

    def _analyze(self, name: str, kind: type[R], **given: object) -> R:
        return make_result(kind, _engine.analyze(name, [self._handle], _options(**given)), _formats()[name])

    def summary(
        self,
        *,
        by: Literal["call-site", "category", "component", "layer", "module", "phase", "step"] | None = None,
        top: int | None = None,
        **chosen: Unpack[Blocks],
    ) -> Summary:
        """Peak memory of each device, and the call sites (or owners, ``by``) that held it."""
        from tidemark.reading.results.summary import Summary

        return self._analyze("summary", Summary, by=by, top=top, **chosen)

    def breakdown(
        self,
        *,
        by: Literal["component", "layer", "module", "phase", "step"] | None = None,
        top: int | None = None,
        at: str | None = None,
        **chosen: Unpack[Blocks],
    ) -> Breakdown:
        """Memory at a moment by category: parameters, gradients, activations, ..."""
        from tidemark.reading.results.breakdown import Breakdown

        return self._analyze("breakdown", Breakdown, by=by, top=top, at=at, **chosen)

    def table(
        self,
        *,
        by: Literal["stack", "size", "device", "thread", "stream", "pool", "annotation"] | Owner | None = None,
        top: int | None = None,
        at: str | None = None,
        **chosen: Unpack[Blocks],
    ) -> Table:
        """Live allocations at a moment, in groups."""
        from tidemark.reading.results.table import Table

        return self._analyze("table", Table, by=by, top=top, at=at, **chosen)

    def tree(
        self,
        *,
        by: Owner | None = None,
        depth: int | None = None,
        min_share: str | float | None = None,
        by_count: bool = False,
        at: str | None = None,
        **chosen: Unpack[Blocks],
    ) -> Tree:
        """Live allocations at a moment, as a call tree. ``min_share``: ``"1%"`` or ``0.01``."""
        from tidemark.reading.results.tree import Tree

        return self._analyze("tree", Tree, by=by, depth=depth, min_share=min_share, by_count=by_count, at=at, **chosen)

    def timeline(
        self,
        *,
        by: Literal["device", "call-site"] | Owner | None = None,
        points: int | None = None,
        **chosen: Unpack[Blocks],
    ) -> Timeline:
        """Allocated and reserved memory over time, as a whole or in layers; with a figure."""
        from tidemark.reading.results.timeline import Timeline

        return self._analyze("timeline", Timeline, by=by, points=points, **chosen)

    def temporary(
        self,
        *,
        by: Literal["stack"] | Owner | None = None,
        within: int | None = None,
        top: int | None = None,
        **chosen: Unpack[Blocks],
    ) -> Temporary:
        """Short-lived allocations, and the peak without them."""
        from tidemark.reading.results.temporary import Temporary

        return self._analyze("temporary", Temporary, by=by, within=within, top=top, **chosen)

    def patterns(
        self,
        *,
        top: int | None = None,
        **chosen: Unpack[Blocks],
    ) -> Patterns:
        """Avoidable peak memory, by lifetime of the allocations."""
        from tidemark.reading.results.patterns import Patterns

        return self._analyze("patterns", Patterns, top=top, **chosen)

    def fragmentation(
        self,
        *,
        by: Literal["stack"] | Owner | None = None,
        top: int | None = None,
        simulate: Simulate | None = None,
        at: str | None = None,
        **chosen: Unpack[Blocks],
    ) -> Fragmentation:
        """Reserved memory that is not allocated, and the blocks that keep it reserved. ``simulate="model"`` also tries other
        settings of the allocator."""
        from tidemark.reading.results.fragmentation import Fragmentation

        return self._analyze("fragmentation", Fragmentation, by=by, top=top, simulate=simulate, at=at, **chosen)

    def leaks(
        self,
        *,
        by: Owner | None = None,
        top: int | None = None,
        warmup: int | None = None,
        min_growth: str | int | None = None,
        **chosen: Unpack[Blocks],
    ) -> Leaks:
        """Memory that grows from step to step. ``min_growth``: bytes for each step, or ``"10KiB/step"``."""
        from tidemark.reading.results.leaks import Leaks

        return self._analyze("leaks", Leaks, by=by, top=top, warmup=warmup, min_growth=min_growth, **chosen)

    def ledger(self, *, at: str | None = None, device: str | None = None) -> Ledger:
        """All memory of each GPU at a moment: PyTorch, libraries, context, other processes."""
        from tidemark.reading.results.ledger import Ledger

        return self._analyze("ledger", Ledger, at=at, device=device)

    def explain(
        self,
        *,
        by: Literal["stack"] | Owner | None = None,
        top: int | None = None,
        failures: int | None = None,
        capacity: str | int | None = None,
        simulate: Simulate | None = None,
        **chosen: Unpack[Blocks],
    ) -> Explanation:
        """Out-of-memory errors: cause, top allocations, possible fixes. ``capacity``: the device's bytes, or ``"79.18GiB"``."""
        from tidemark.reading.results.explain import Explanation

        return self._analyze(
            "explain", Explanation, by=by, top=top, failures=failures, capacity=capacity, simulate=simulate, **chosen
        )

    def simulate(
        self,
        settings: str | Iterable[str] = (),
        *,
        search: bool = False,
        memory: str | int | None = None,
        recorded: str | None = None,
        device: str | None = None,
        allocator: Literal["auto", "pytorch", "model"] = "auto",
    ) -> Simulation:
        """Replays the allocations with other settings of PyTorch's allocator. Each of ``settings`` is an alternative, such as
        ``"expandable_segments:True"``; ``search`` adds those that are worth trying. ``memory``: the limit of PyTorch's reserved
        memory on each GPU, ``"24GiB"``. ``recorded``: the settings of the recorded program, if missing from the file.
        ``allocator``: ``"pytorch"`` replays in another process of this interpreter, ``"model"`` in this one.
        """
        from tidemark.reading.results.simulate import Simulation

        sets = [settings] if isinstance(settings, str) else list(settings)
        size = None if memory is None else str(memory)
        handle = _engine.simulate(self._handle, sets, search, size, recorded, device, allocator)
        return make_result(Simulation, handle, ["text", "json"])

    @property
    def blocks(self) -> ArrowTable:
        """Every recorded block, in order of birth, one per row."""
        return ArrowTable(_engine.table(self._handle, "blocks", None, None), "blocks")

    @property
    def events(self) -> ArrowTable:
        """Every allocation and free of a recorded block, in order of time; ``block`` is its row in ``blocks``."""
        return ArrowTable(_engine.table(self._handle, "events", None, None), "events")

    def at(self, moment: str, *, device: str | None = None) -> Moment:
        """The recording at a point in time, given as for ``--at``: ``"peak"`` (of each device), ``"end"``, ``"12.5s"``,
        ``"40%"``, ``"step:3"``, or a mark's name.
        """
        return Moment(self, moment, device)


class Moment:
    """A recording at a point in time: made by ``run.at()``."""

    def __init__(self, run: Run, moment: str, device: str | None) -> None:
        self._run = run
        self._moment = moment
        self._device = device

    def __repr__(self) -> str:
        return f"<tidemark {self._run.path} at {self._moment}>"

    @property
    def blocks(self) -> ArrowTable:
        """The blocks that were alive then, in order of devices and births."""
        handle = _engine.table(self._run._handle, "blocks", self._moment, self._device)
        return ArrowTable(handle, f"blocks at {self._moment}")


class Job(Sequence[Run]):
    """The recordings of a job, one for each process, in the given order: made by ``tidemark.read([...])``."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = tuple(runs)

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Job: ...
    def __getitem__(self, index: int | slice) -> Run | Job:
        return Job(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __repr__(self) -> str:
        return f"<tidemark Job of {len(self._runs)} recordings>"

    def summary(
        self,
        *,
        rank: int | None = None,
        by: Literal["call-site", "category", "component", "layer", "module", "phase", "step"] | None = None,
        top: int | None = None,
        **chosen: Unpack[Blocks],
    ) -> JobSummary:
        """All processes in one table, and the summary of each; with ``rank``, only of that one."""
        from tidemark.reading.results.summary import JobSummary

        handle = _engine.analyze("summary", [run._handle for run in self._runs], _options(rank=rank, by=by, top=top, **chosen))
        return make_result(
            JobSummary,
            handle,
            _formats()["summary"],
            lambda document: document if "ranks" in document else {"ranks": None, "recordings": [document]},
        )


@overload
def read(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]  # a str is iterable too
    source: Path, *, blocks: bool = True, component_rules: Path | None = None, progress: bool = True
) -> Run: ...
@overload
def read(source: Iterable[Path], *, blocks: bool = True, component_rules: Path | None = None, progress: bool = True) -> Job: ...
def read(
    source: Path | Iterable[Path],
    *,
    blocks: bool = True,
    component_rules: Path | None = None,
    progress: bool = True,
) -> Run | Job:
    """Reads a recording (``run.tide``) or a PyTorch memory snapshot (``snapshot.pickle``, also ``.xz``, ``.gz``, ``.zst``);
    from a list, the recordings of a job.

    The file is read once and kept in memory, some 35 bytes an event: later changes of the file have no effect. With
    ``blocks=False`` only the data for ``summary()`` is kept, in memory that does not grow with the recording; analyses that
    need the blocks then read the file again, and fail if it has changed. ``component_rules``: a file that maps modules to
    components, as ``--component-rules``. ``progress``: shown on stderr if that is a terminal.

    Nothing in a file is executed, including snapshots. Raises TidemarkError, which names the file, if it does not exist, is
    damaged, or has another format. Ctrl-C stops between two files.
    """
    rules = b"" if component_rules is None else os.fsencode(component_rules)
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        python = os.fsencode(sys.executable or "")
        return Run(_engine.open(os.fsencode(path), blocks, rules, progress, python, b""), path)
    return Job(read(path, blocks=blocks, component_rules=component_rules, progress=progress) for path in source)


def compare(
    a: Run | Path,
    b: Run | Path,
    *,
    by: Literal["peak", "traffic"] | None = None,
    group_by: Literal["stack"] | Owner | None = None,
    ignore_lines: bool = False,
    top: int | None = None,
    fail_over: str | int | None = None,
    **chosen: Unpack[Blocks],
) -> Comparison:
    """The changes from ``a`` to ``b``: totals of each device, and the stacks (or owners, ``group_by``) that hold more or less
    at the peak, or allocate more or less (``by="traffic"``). ``fail_over``: ``budget.exceeded`` of the result is whether a
    device's peak grew by more than this, ``"5%"`` or ``"100MiB"``. Paths are read first.
    """
    options = _options(by=by, group_by=group_by, ignore_lines=ignore_lines, top=top, fail_over=fail_over, **chosen)
    first = a if isinstance(a, Run) else read(a)
    second = b if isinstance(b, Run) else read(b)
    from tidemark.reading.results.compare import Comparison

    return make_result(Comparison, _engine.compare(first._handle, second._handle, options), ["text", "json"])
