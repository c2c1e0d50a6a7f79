"""``run.timeline()``, ``.patterns()`` and ``.leaks()``: memory over time and from step to step."""

from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Advice, Frame, Holder, OfRecording, Owner, SampledBytes, Stack


@dataclass(frozen=True)
class TimelinePoint:
    """A device's memory at one time."""

    time_ns: int
    allocated_bytes: int
    reserved_bytes: Optional[int]
    active_bytes: Optional[int]
    driver_bytes: Optional[int]


@dataclass(frozen=True)
class TimelineLayer(Holder):
    """What a stack or owner held at each of the points."""

    held_bytes: tuple[int, ...]


@dataclass(frozen=True)
class TimelineDevice:
    """Memory of one device over time; layers by what was asked for, the others are None."""

    device: str
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    peak_reserved_bytes: Optional[int]
    peak_active_bytes: Optional[int]
    peak_driver_bytes: Optional[int]
    peak_driver_at_ns: Optional[int]
    points: tuple[TimelinePoint, ...]
    call_sites: Optional[tuple[TimelineLayer, ...]]
    categories: Optional[tuple[TimelineLayer, ...]]
    components: Optional[tuple[TimelineLayer, ...]]
    layers: Optional[tuple[TimelineLayer, ...]]
    modules: Optional[tuple[TimelineLayer, ...]]
    phases: Optional[tuple[TimelineLayer, ...]]
    steps: Optional[tuple[TimelineLayer, ...]]
    other_held_bytes: Optional[tuple[int, ...]]  #: of further call sites
    other_owners_held_bytes: Optional[tuple[int, ...]]
    unrecorded_held_bytes: Optional[tuple[int, ...]]


@dataclass(frozen=True)
class TimelineOutOfMemory:
    """A request that failed."""

    device: str
    time_ns: int
    requested_bytes: int


@dataclass(frozen=True)
class TimelineStep:
    """The beginning of a training step."""

    step: int
    begin_ns: int


@dataclass(frozen=True)
class TimelinePhase:
    """A stretch of one phase of the training steps."""

    phase: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class TimelinePause:
    """A time in which the program had switched recording off."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class TimedBytes:
    """A sample."""

    time_ns: int
    bytes: int


@dataclass(frozen=True)
class SampledOverTime(SampledBytes):
    """A sampled value over time."""

    points: tuple[TimedBytes, ...]


@dataclass(frozen=True)
class ResidentPoint:
    """What the resident memory of the process consists of, in a sample."""

    time_ns: int
    anon_bytes: int
    file_bytes: int
    shmem_bytes: int


@dataclass(frozen=True)
class HostOverTime:
    """Memory of the process on the host."""

    rss: Optional[SampledOverTime]
    pss: Optional[SampledOverTime]
    resident: tuple[ResidentPoint, ...]


@dataclass(frozen=True, repr=False)
class Timeline(Result, OfRecording):
    """Allocated and reserved memory over time."""

    devices: tuple[TimelineDevice, ...]
    out_of_memory: tuple[TimelineOutOfMemory, ...]
    steps: tuple[TimelineStep, ...]
    phases: Optional[tuple[TimelinePhase, ...]]
    pauses: tuple[TimelinePause, ...]
    host: Optional[HostOverTime]


@dataclass(frozen=True)
class LifetimeAtPeak:
    """What blocks of one kind of lifetime held at the peak."""

    lifetime: str
    bytes: int
    block_count: int


@dataclass(frozen=True)
class PatternRow:
    """A stack whose blocks have the pattern."""

    held_at_peak_bytes: int
    held_at_peak_block_count: int
    block_count: int
    total_bytes: int
    stack: Optional[Stack]


@dataclass(frozen=True)
class Pattern:
    """Blocks that were kept longer than they were needed, and the peak without that."""

    block_count: int
    held_at_peak_bytes: int
    reduced_peak_bytes: int
    reduced_peak_at_ns: Optional[int]
    avoidable_peak_bytes: int
    rows: tuple[PatternRow, ...]
    other_row_count: int
    other_held_at_peak_bytes: int


@dataclass(frozen=True)
class PatternsDevice:
    """The patterns of one device."""

    device: str
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    unrecorded_at_peak_bytes: int
    lifetimes_at_peak: tuple[LifetimeAtPeak, ...]
    advice: tuple[Advice, ...]
    kept_into_next_step: Optional[Pattern]
    freed_after_allocation: Pattern


@dataclass(frozen=True)
class StepsFound:
    """How training steps were told, and how many there are."""

    source: str
    count: int


@dataclass(frozen=True, repr=False)
class Patterns(Result, OfRecording):
    """Avoidable peak memory, by lifetime of the allocations."""

    steps: StepsFound
    devices: tuple[PatternsDevice, ...]


@dataclass(frozen=True)
class OwnerGrowth(Owner):
    """An owner's growth."""

    bytes_per_step: float
    held_bytes: int
    held_block_count: int


@dataclass(frozen=True)
class OtherGrowth:
    """Growth of the owners beyond the listed ones."""

    count: int
    bytes_per_step: float
    held_bytes: int
    held_block_count: int


@dataclass(frozen=True)
class GrowthByOwners:
    """Growth by the owners that were asked for; the others are None."""

    categories: Optional[tuple[OwnerGrowth, ...]]
    other_categories: Optional[OtherGrowth]
    components: Optional[tuple[OwnerGrowth, ...]]
    other_components: Optional[OtherGrowth]
    layers: Optional[tuple[OwnerGrowth, ...]]
    other_layers: Optional[OtherGrowth]
    modules: Optional[tuple[OwnerGrowth, ...]]
    other_modules: Optional[OtherGrowth]
    phases: Optional[tuple[OwnerGrowth, ...]]
    other_phases: Optional[OtherGrowth]
    steps: Optional[tuple[OwnerGrowth, ...]]
    other_steps: Optional[OtherGrowth]


@dataclass(frozen=True)
class DeviceGrowth(GrowthByOwners):
    """What grows on one device, by owner."""

    device: str


@dataclass(frozen=True)
class UsualMistake:
    """A mistake that a leak matches, how that is known, and what to do about it."""

    name: str  #: "losses_with_graph", "metrics_not_detached", "capturing_hook", "unbounded_cache", "growing_container"
    known_as: str
    advice: str


@dataclass(frozen=True)
class LeakGroup(GrowthByOwners):
    """Leaks with one cause: a retained graph, or a call site."""

    kind: str
    known_as: str
    device: str
    bytes_per_step: float
    bytes_per_step_low: float
    bytes_per_step_high: float
    blocks_per_step: Optional[float]
    growing_step_count: int
    analyzed_step_count: int
    first_step: int
    first_step_ns: int
    last_step: int
    last_step_ns: int
    held_bytes: int
    held_block_count: int
    leak_count: int
    perhaps_input: bool
    mistake: Optional[UsualMistake]
    retained_by: Optional[Stack]
    caller: Optional[Frame]


@dataclass(frozen=True)
class LeakSite:
    """Growth of one stack from step to step; rates are None where the growth is unclear."""

    device: str
    classification: str
    kind: str
    bytes_per_step: Optional[float]
    bytes_per_step_low: Optional[float]
    bytes_per_step_high: Optional[float]
    blocks_per_step: Optional[float]
    growing_step_count: Optional[int]
    analyzed_step_count: Optional[int]
    first_step: int
    first_step_ns: int
    last_step: int
    last_step_ns: int
    freed_after_steps: Optional[int]
    held_bytes: int
    held_block_count: int
    requested_bytes: Optional[int]
    stack_count: int
    stack: Optional[Stack]


@dataclass(frozen=True)
class Leak(LeakSite):
    """A stack that leaks; ``group`` is its index in ``groups``."""

    group: int


@dataclass(frozen=True)
class TrainingSteps:
    """The training steps, and how they were told."""

    source: str
    count: int
    warmup_count: int
    analyzed_count: int
    regularity: Optional[float]
    anchor: Optional[Stack]
    mark: Optional[str]
    starts_ns: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Leaks(Result, OfRecording):
    """Memory that grows from step to step."""

    _has_tables = True
    verdict: str  #: "leak", "no_leak", "insufficient_data"
    insufficient_data_reason: Optional[str]
    bytes_per_step: Optional[float]
    groups: tuple[LeakGroup, ...]
    other_group_count: int
    leaks: tuple[Leak, ...]
    other_leak_count: int
    min_growth_bytes_per_step: Optional[int]
    small_leaks: tuple[LeakSite, ...]
    small_leaks_bytes_per_step: Optional[float]
    other_small_leak_count: int
    non_leak_growth: tuple[LeakSite, ...]
    other_non_leak_growth_count: int
    by: Optional[tuple[DeviceGrowth, ...]]
    steps: TrainingSteps
