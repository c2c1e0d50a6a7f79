"""What ``tidemark leaks`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Frame, OfRecording, Owner, Stack


@dataclass(frozen=True)
class UsualMistake:
    """A mistake that a leak matches, its confidence, and what to do about it."""

    #: "losses_with_graph", "metrics_not_detached", "tensors_with_graph", "capturing_hook", "repeated_hook", "unbounded_cache",
    #: "growing_container"
    name: str
    confidence: str  #: "exact", "estimated", "unknown"
    cause: str
    fix: str  #: what to do


@dataclass(frozen=True)
class OwnerGrowth(Owner):
    """An owner's growth."""

    bytes_per_step: float
    held_bytes: int  #: at the last step's start, as the next
    held_block_count: int


@dataclass(frozen=True)
class OtherGrowth:
    """Growth of the owners beyond the listed ones."""

    count: int  #: owners
    bytes_per_step: float
    held_bytes: int  #: at the last step's start, as the next
    held_block_count: int


@dataclass(frozen=True)
class GrowthByOwners:
    """Growth by the owners that were asked for; the others are None."""

    categories: Optional[tuple[OwnerGrowth, ...]]  #: fastest first; they and the others add up to all
    other_categories: Optional[OtherGrowth]
    components: Optional[tuple[OwnerGrowth, ...]]  #: fastest first; they and the others add up to all
    other_components: Optional[OtherGrowth]
    layers: Optional[tuple[OwnerGrowth, ...]]  #: fastest first; they and the others add up to all
    other_layers: Optional[OtherGrowth]
    modules: Optional[tuple[OwnerGrowth, ...]]  #: fastest first; they and the others add up to all
    other_modules: Optional[OtherGrowth]
    phases: Optional[tuple[OwnerGrowth, ...]]  #: fastest first; they and the others add up to all
    other_phases: Optional[OtherGrowth]
    steps: Optional[tuple[OwnerGrowth, ...]]  #: fastest first; they and the others add up to all
    other_steps: Optional[OtherGrowth]


@dataclass(frozen=True)
class LeakGroup(GrowthByOwners):
    """Leaks with one cause: a retained graph, or a call site."""

    kind: str  #: "call_site", "forward_pass", "autograd_graph"
    confidence: str  #: "exact", "estimated", "unknown": of the leaks having one cause
    device: str
    bytes_per_step: float  #: growth, with its 95% interval
    bytes_per_step_low: float
    bytes_per_step_high: float
    blocks_per_step: Optional[float]  #: None where each step replaces its block
    growing_step_count: int  #: analyzed steps that left memory behind
    analyzed_step_count: int
    every_steps: Optional[int]  #: steps from one growth to the next; None where each step grows, or at no fixed interval
    first_step: int  #: with growth; steps count from 0
    first_step_ns: int
    last_step: int  #: with growth
    last_step_ns: int
    held_bytes: int  #: at the last step's start, in blocks allocated after the warm-up
    held_block_count: int
    leak_count: int  #: how many leaks it consists of
    perhaps_input: bool  #: whether it is a call site that another group's forward passes may retain as their input
    mistake: Optional[UsualMistake]  #: the usual mistake that it matches; None: none
    #: stack of the tensor that is made last, likely the one that retains the others; None for a call site
    retained_by: Optional[Stack]
    caller: Optional[Frame]  #: innermost frame of the project common to the stacks of its activations


@dataclass(frozen=True)
class LeakSite:
    """Growth of one stack from step to step; rates are None where the growth is unclear."""

    device: str
    classification: str  #: "leak", "too_few_steps", "stopped", "slowing", "unclear", "with_work"
    kind: str  #: "retained", "replaced": retained: blocks accumulate; replaced: by larger ones
    bytes_per_step: Optional[float]  #: growth, with its 95% interval
    bytes_per_step_low: Optional[float]
    bytes_per_step_high: Optional[float]
    blocks_per_step: Optional[float]  #: None where each step replaces its block
    growing_step_count: Optional[int]  #: analyzed steps that left memory behind
    analyzed_step_count: Optional[int]
    first_step: int  #: with growth; steps count from 0
    first_step_ns: int
    last_step: int  #: with growth
    last_step_ns: int
    freed_after_steps: Optional[int]  #: step boundaries that its freed blocks live through at most; None when none is freed
    held_bytes: int  #: at the last step's start, in blocks allocated after the warm-up
    held_block_count: int
    requested_bytes: Optional[int]  #: without a stack: only blocks of this size
    stack_count: int  #: stacks that leak at this source line
    stack: Optional[Stack]  #: the one that grows fastest


@dataclass(frozen=True)
class Leak(LeakSite):
    """A stack that leaks; ``group`` is its index in ``groups``."""

    group: int


@dataclass(frozen=True)
class KeptSite:
    """What several steps leave at one stack until it is freed together, again and again."""

    device: str
    bytes: int  #: at most at one time, after the steps that made them
    block_count: int
    step_count: int  #: at most, whose blocks are freed in one step
    times: int  #: steps that free blocks of several steps
    stack: Optional[Stack]


@dataclass(frozen=True)
class HostGrowth:
    """Growth of the host's memory that is no tensors."""

    of: str  #: "process", "other_processes": anonymous memory of the process, or PSS of the other processes of the job
    from_bytes: int  #: at the first sample after the warm-up
    from_ns: int
    to_bytes: int  #: at the last sample
    to_ns: int
    bytes_per_second: float
    tensor_bytes: Optional[int]  #: growth of the process's tensors on the CPU in that time


@dataclass(frozen=True)
class DeviceGrowth(GrowthByOwners):
    """What grows on one device, by owner."""

    device: str


@dataclass(frozen=True)
class TrainingSteps:
    """The training steps, and how they were told."""

    source: str  #: "none", "given", "annotation", "optimizer", "stack", "sizes"
    count: int
    warmup_count: int
    analyzed_count: int
    regularity: Optional[float]  #: 0 to 1; None for given steps
    anchor: Optional[Stack]  #: stack that starts a step
    mark: Optional[str]  #: name of the marks that start a step
    starts_ns: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Leaks(Result, OfRecording):
    """Memory that grows from step to step."""

    verdict: str  #: "leak", "no_leak", "insufficient_data"
    insufficient_data_reason: Optional[str]  #: "no_events", "no_steps", "too_few_steps"
    bytes_per_step: Optional[float]  #: of all groups above the floor; None without a verdict
    groups: tuple[LeakGroup, ...]  #: fastest first
    other_group_count: int
    leaks: tuple[Leak, ...]  #: of the listed groups, fastest first
    other_leak_count: int
    min_growth_bytes_per_step: Optional[int]  #: --min-growth
    small_leaks: tuple[LeakSite, ...]  #: below the floor, fastest first: no part of the verdict
    small_leaks_bytes_per_step: Optional[float]  #: of all of them
    other_small_leak_count: int
    non_leak_growth: tuple[LeakSite, ...]  #: growth that is not a leak, most bytes held first
    other_non_leak_growth_count: int
    #: kept for several steps and then freed together, most bytes first: no part of the verdict
    kept_over_steps: tuple[KeptSite, ...]
    other_kept_over_steps_count: int
    #: from the warm-up to the last step, where it goes on all along: no part of the verdict
    host_growth: tuple[HostGrowth, ...]
    by: Optional[tuple[DeviceGrowth, ...]]  #: by the owners that --by asks for; None without it
    steps: TrainingSteps
