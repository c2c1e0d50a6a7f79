"""What ``tidemark fragmentation`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Holder, OfRecording


@dataclass(frozen=True)
class FragmentationMeasures:
    """How fragmented a device's memory is at one time."""

    time_ns: int
    allocated_bytes: int
    reserved_bytes: Optional[int]
    active_bytes: Optional[int]
    unused_share: Optional[float]  #: 1 - allocated / reserved
    free_bytes: Optional[int]  #: reserved and not active
    free_block_count: Optional[int]
    largest_free_block_bytes: Optional[int]  #: the largest request that needs no memory from the driver
    external_fragmentation: Optional[float]  #: 1 - largest free block / free
    releasable_bytes: Optional[int]  #: free, in segments that are free as a whole
    inactive_split_bytes: Optional[int]  #: free, in other segments that cannot grow
    rounding_bytes: Optional[int]  #: allocated beyond what was requested


@dataclass(frozen=True)
class ShareTrend:
    """Whether a share rises or falls since the warm-up, with its 95% interval."""

    change: float
    low: float
    high: float
    point_count: int
    begin_ns: int
    end_ns: int
    verdict: str  #: "rises", "falls", "unclear"


@dataclass(frozen=True)
class UnusedTrend:
    """Whether unused memory rises or falls since the warm-up, with its 95% interval."""

    change_bytes: int
    low_bytes: int
    high_bytes: int
    mb_per_minute: float  #: in MiB
    begin_ns: int
    end_ns: int
    verdict: str  #: "rises", "falls", "unclear"


@dataclass(frozen=True)
class UnusedForecast:
    """When unused memory takes what the device has left; ``None``: it does not, or is not known."""

    device_free_bytes: Optional[int]  #: at the end; None: not sampled
    predicted_oom_time_seconds: Optional[float]  #: from the end
    earliest_seconds: Optional[float]
    latest_seconds: Optional[float]  #: None: perhaps never
    text: str  #: a sentence


@dataclass(frozen=True)
class UnusedMemory:
    """How reserved memory goes on that is in no tensor even when most is allocated."""

    pattern: str  #: "unknown", "stable", "growing", "steps", "sawtooth", "held_peak", "irregular": as in the table above
    pattern_text: str
    verdict: str  #: a sentence
    is_fragmented: Optional[bool]  #: None, as the next, for an unknown pattern
    change_count: int  #: allocations and frees in the time looked at
    since_ns: Optional[int]  #: since when the pattern holds
    reserved_bytes: Optional[int]  #: at the end
    idle_since_ns: Optional[int]
    idle_bytes: Optional[int]  #: of reserved_bytes, more than was allocated at any one time since then
    idle_share: Optional[float]  #: of reserved_bytes
    period_seconds: Optional[float]  #: of a sawtooth
    peak_allocated_bytes: Optional[int]  #: held_peak: what was reserved for
    peak_at_ns: Optional[int]
    later_allocated_bytes: Optional[int]  #: held_peak: at most, since then
    trend: Optional[UnusedTrend]
    forecast: UnusedForecast


@dataclass(frozen=True)
class FragmentationAdvice:
    """What may be done about it, with the measured reason and a command that checks it."""

    kind: str  #: "empty_cache", "expandable_segments", "search", "settings"
    change: str
    reason: str  #: what was measured
    avoidable_bytes: int
    settings: Optional[str]  #: as in PYTORCH_CUDA_ALLOC_CONF
    check: str  #: a command


@dataclass(frozen=True)
class SegmentBlock:
    """A stretch of a segment."""

    address: int
    bytes: int
    state: str  #: "free", "allocated", "pending_free"


@dataclass(frozen=True)
class Segment:
    """Memory that the allocator reserved from the driver in one piece."""

    address: int
    bytes: int
    free_bytes: int
    expandable: bool
    blocks: tuple[SegmentBlock, ...]  #: in order of address


@dataclass(frozen=True)
class Pinning(Holder):
    """What keeps free memory reserved: blocks in the same segments."""

    pinned_free_bytes: int  #: in segments that only these blocks hold
    segment_count: int  #: with free memory in them
    block_count: int  #: in these segments, as the next
    bytes: int


@dataclass(frozen=True)
class SizeClass:
    """Blocks of ``min_bytes`` and more, below the next class."""

    min_bytes: int
    allocation_count: int  #: in the whole recording
    live_block_count: int
    live_bytes: int
    free_block_count: int
    free_bytes: int


@dataclass(frozen=True)
class FragmentationDevice:
    """Fragmentation of one device."""

    device: str
    peak_unused_share: Optional[float]  #: 1 - peak active / peak reserved
    at_peak_allocated: Optional[FragmentationMeasures]  #: None: there is no such peak
    at_peak_reserved: Optional[FragmentationMeasures]
    at_end: FragmentationMeasures
    over_time: tuple[FragmentationMeasures, ...]  #: equally far apart, the last one at the end
    unused_share_trend: Optional[ShareTrend]  #: None: too few known values
    external_fragmentation_trend: Optional[ShareTrend]
    unused_memory: UnusedMemory
    advice: tuple[FragmentationAdvice, ...]  #: empty: nothing is wrong, or too little is known
    at_moment: Optional[FragmentationMeasures]  #: --at
    segments: tuple[Segment, ...]  #: at the moment; those with both blocks and free memory, most of it first
    other_segment_count: int
    other_segments_free_bytes: int
    empty_segment_count: int
    pinning_stacks: tuple[Pinning, ...]  #: at the moment, most pinned free bytes first
    other_pinning_stack_count: int
    pinning_categories: tuple[Pinning, ...]  #: all categories, likewise
    size_classes: tuple[SizeClass, ...]  #: at the moment; those with anything in them


@dataclass(frozen=True, repr=False)
class Fragmentation(Result, OfRecording):
    """Reserved memory that is not allocated, and the blocks that keep it reserved."""

    devices: tuple[FragmentationDevice, ...]
    simulation: Optional[str]  #: what other settings of the allocator would do, in words
