"""``run.fragmentation()`` and ``.explain()``: memory that cannot be used, and requests that failed for want of it."""

from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Holder, OfRecording, Stack
from tidemark.reading.results.host import KilledProcess
from tidemark.reading.results.summary import CallSite


@dataclass(frozen=True)
class FragmentationMeasures:
    """How fragmented a device's memory is at one time."""

    time_ns: int
    allocated_bytes: int
    reserved_bytes: Optional[int]
    active_bytes: Optional[int]
    unused_share: Optional[float]
    free_bytes: Optional[int]
    free_block_count: Optional[int]
    largest_free_block_bytes: Optional[int]
    external_fragmentation: Optional[float]
    releasable_bytes: Optional[int]
    inactive_split_bytes: Optional[int]
    rounding_bytes: Optional[int]


@dataclass(frozen=True)
class ShareTrend:
    """Whether a share rises or falls since the warm-up, with its 95% interval."""

    change: float
    low: float
    high: float
    point_count: int
    begin_ns: int
    end_ns: int
    verdict: str  #: "rises", "falls" or "unclear"


@dataclass(frozen=True)
class SegmentBlock:
    """A stretch of a segment."""

    address: int
    bytes: int
    state: str


@dataclass(frozen=True)
class Segment:
    """Memory that the allocator reserved from the driver in one piece."""

    address: int
    bytes: int
    free_bytes: int
    expandable: bool
    blocks: tuple[SegmentBlock, ...]


@dataclass(frozen=True)
class Pinning(Holder):
    """What keeps free memory reserved: blocks in the same segments."""

    pinned_free_bytes: int
    segment_count: int
    block_count: int
    bytes: int


@dataclass(frozen=True)
class SizeClass:
    """Blocks of ``min_bytes`` and more, below the next class."""

    min_bytes: int
    allocation_count: int
    live_block_count: int
    live_bytes: int
    free_block_count: Optional[int]
    free_bytes: Optional[int]


@dataclass(frozen=True)
class UnusedTrend:
    """Whether unused memory rises or falls since the warm-up, with its 95% interval."""

    change_bytes: int
    low_bytes: int
    high_bytes: int
    mb_per_minute: float
    begin_ns: int
    end_ns: int
    verdict: str  #: "rises", "falls" or "unclear"


@dataclass(frozen=True)
class UnusedForecast:
    """When unused memory takes what the device has left; ``None``: it does not, or is not known."""

    device_free_bytes: Optional[int]
    predicted_oom_time_seconds: Optional[float]
    earliest_seconds: Optional[float]
    latest_seconds: Optional[float]
    text: str


@dataclass(frozen=True)
class UnusedMemory:
    """How reserved memory goes on that is in no tensor even when most is allocated."""

    pattern: str  #: "stable", "growing", "steps", "sawtooth", "held_peak", "irregular" or "unknown"
    pattern_text: str
    verdict: str
    is_fragmented: Optional[bool]
    change_count: int
    since_ns: Optional[int]
    reserved_bytes: Optional[int]
    idle_since_ns: Optional[int]
    idle_bytes: Optional[int]
    idle_share: Optional[float]
    period_seconds: Optional[float]
    peak_allocated_bytes: Optional[int]
    peak_at_ns: Optional[int]
    later_allocated_bytes: Optional[int]
    trend: Optional[UnusedTrend]
    forecast: UnusedForecast


@dataclass(frozen=True)
class FragmentationAdvice:
    """What may be done about it, with the measured reason and a command that checks it."""

    kind: str
    change: str
    reason: str
    avoidable_bytes: int
    settings: Optional[str]
    check: str


@dataclass(frozen=True)
class FragmentationDevice:
    """Fragmentation of one device."""

    device: str
    peak_unused_share: Optional[float]
    at_peak_allocated: Optional[FragmentationMeasures]
    at_peak_reserved: Optional[FragmentationMeasures]
    at_end: FragmentationMeasures
    over_time: tuple[FragmentationMeasures, ...]
    unused_share_trend: Optional[ShareTrend]
    external_fragmentation_trend: Optional[ShareTrend]
    unused_memory: UnusedMemory
    advice: tuple[FragmentationAdvice, ...]
    at_moment: Optional[FragmentationMeasures]
    segments: tuple[Segment, ...]
    other_segment_count: int
    other_segments_free_bytes: int
    empty_segment_count: int
    pinning_stacks: tuple[Pinning, ...]
    other_pinning_stack_count: int
    pinning_categories: tuple[Pinning, ...]
    size_classes: tuple[SizeClass, ...]


@dataclass(frozen=True, repr=False)
class Fragmentation(Result, OfRecording):
    """Reserved memory that is not allocated, and the blocks that keep it reserved."""

    devices: tuple[FragmentationDevice, ...]
    simulation: Optional[str]  #: what other settings of the allocator would do, in words


@dataclass(frozen=True)
class RequestThread:
    """The thread of a request."""

    tid: int
    name: Optional[str]


@dataclass(frozen=True)
class FailedRequest:
    """The request that failed."""

    bytes: int
    segment_bytes: Optional[int]
    expandable: Optional[bool]
    stack: Optional[Stack]
    thread: Optional[RequestThread]
    stream: Optional[int]
    pool: Optional[tuple[int, ...]]


@dataclass(frozen=True)
class CachedMemory:
    """Free blocks that the allocator kept."""

    bytes: int
    block_count: int
    largest_block_bytes: int


@dataclass(frozen=True)
class Cache:
    """Free memory of the allocator when the request failed, by whether the request could use it."""

    usable: CachedMemory
    other_streams: CachedMemory
    other_pools: CachedMemory
    other_segment_kinds: CachedMemory
    pending_free_bytes: int
    releasable_in_private_pools_bytes: int
    releasable_in_default_pool_bytes: int


@dataclass(frozen=True)
class MemoryLimit:
    """Between which values the limit lies that was met."""

    at_least_bytes: int
    below_bytes: int


@dataclass(frozen=True)
class Cause:
    """A cause of a failure, and how much memory it explains."""

    cause: str
    bytes: int
    certain: bool
    text: str


@dataclass(frozen=True)
class LeakAtFailure:
    """A leak at the time of a failure."""

    bytes_per_step: float
    held_bytes: int
    held_block_count: int
    stack: Optional[Stack]


@dataclass(frozen=True)
class LeakAnalysis:
    """Whether memory grew from step to step before the failure."""

    verdict: str
    step_count: int
    leaked_bytes: int
    leaks: tuple[LeakAtFailure, ...]


@dataclass(frozen=True)
class Fix:
    """A change that would have let the request succeed."""

    kind: str
    bytes: int
    certain: bool
    block_count: Optional[int]
    stack_block_count: Optional[int]
    stack: Optional[Stack]
    text: str
    check: str


@dataclass(frozen=True)
class TopAllocation(Holder):
    """What held memory when the request failed."""

    bytes: int
    block_count: int
    share: float
    oldest_at_ns: int
    newest_at_ns: int


@dataclass(frozen=True)
class ModuleHeld:
    """A module, and what it held."""

    module: str
    held_bytes: int


@dataclass(frozen=True)
class FailureAdvice:
    """A change of the program that would need less memory at the failure."""

    kind: str
    held_bytes: int
    known_as: str
    has_request: bool
    suffices: Optional[bool]
    block_count: int
    modules: tuple[ModuleHeld, ...]
    stack: Optional[Stack]


@dataclass(frozen=True)
class Failure:
    """An out-of-memory error, or several equal ones."""

    device: str
    message: str
    cause: Optional[str]
    count: int
    first_at_ns: int
    last_at_ns: int
    request: FailedRequest
    allocated_bytes: int
    reserved_bytes: Optional[int]
    cached_bytes: Optional[int]
    device_free_bytes: Optional[int]
    device_free_sampled_at_ns: Optional[int]
    capacity_bytes: Optional[int]
    outside_pytorch_bytes: Optional[int]
    cache: Optional[Cache]
    refused_by: str
    limit: Optional[MemoryLimit]
    missing_bytes: Optional[int]
    causes: tuple[Cause, ...]
    leak_analysis: LeakAnalysis
    fixes: tuple[Fix, ...]
    top_allocations: tuple[TopAllocation, ...]
    other_stack_count: int
    other_stacks_bytes: int
    call_sites: tuple[CallSite, ...]
    other_call_site_count: int
    other_call_sites_bytes: int
    unrecorded_bytes: int
    advice: Optional[tuple[FailureAdvice, ...]]


@dataclass(frozen=True)
class DevicePeaks:
    """Peaks of a device."""

    device: str
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    peak_reserved_bytes: Optional[int]
    peak_reserved_at_ns: Optional[int]


@dataclass(frozen=True, repr=False)
class Explanation(Result, OfRecording):
    """Out-of-memory errors: cause, top allocations, possible fixes."""

    capacity_bytes: Optional[int]
    out_of_memory_count: int
    failures: tuple[Failure, ...]
    other_failure_count: int
    killed: tuple[KilledProcess, ...]
    devices: tuple[DevicePeaks, ...]
