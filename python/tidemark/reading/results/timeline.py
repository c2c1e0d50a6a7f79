"""What ``tidemark timeline`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Holder, OfRecording, SampledBytes


@dataclass(frozen=True)
class TimelinePoint:
    """A device's memory at one time."""

    time_ns: int
    allocated_bytes: int
    reserved_bytes: Optional[int]
    active_bytes: Optional[int]
    driver_bytes: Optional[int]  #: allocated by libraries from the driver; None where it was not recorded


@dataclass(frozen=True)
class TimelineLayer(Holder):
    """What a stack or owner held at each of the points."""

    held_bytes: tuple[int, ...]  #: a number for each point


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
    capacity_bytes: Optional[int]  #: total memory of the GPU; None: unknown
    points: tuple[TimelinePoint, ...]  #: in order of time, with every peak; the last one is at the end
    #: those that held most at the peak, most first; categories and phases: all, in their order
    call_sites: Optional[tuple[TimelineLayer, ...]]
    other_held_bytes: Optional[tuple[int, ...]]  #: by the others, at each point
    unrecorded_held_bytes: Optional[tuple[int, ...]]  #: in no recorded block, at each point
    #: those that held most at the peak, most first; categories and phases: all, in their order
    categories: Optional[tuple[TimelineLayer, ...]]
    other_owners_held_bytes: Optional[tuple[int, ...]]  #: by the others, at each point
    #: those that held most at the peak, most first; categories and phases: all, in their order
    components: Optional[tuple[TimelineLayer, ...]]
    #: those that held most at the peak, most first; categories and phases: all, in their order
    layers: Optional[tuple[TimelineLayer, ...]]
    #: those that held most at the peak, most first; categories and phases: all, in their order
    modules: Optional[tuple[TimelineLayer, ...]]
    #: those that held most at the peak, most first; categories and phases: all, in their order
    phases: Optional[tuple[TimelineLayer, ...]]
    #: those that held most at the peak, most first; categories and phases: all, in their order
    steps: Optional[tuple[TimelineLayer, ...]]


@dataclass(frozen=True)
class TimelineOutOfMemory:
    """A request that failed."""

    device: str
    time_ns: int
    requested_bytes: int


@dataclass(frozen=True)
class TimelineStep:
    """The beginning of a training step."""

    step: int  #: as ``leaks`` counts them, from 0; of more than --points every second, fifth, tenth, ...
    begin_ns: int


@dataclass(frozen=True)
class TimelinePhase:
    """A stretch of one phase of the training steps."""

    phase: str  #: "data", "forward", "backward", "recomputation", "optimizer"
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
    resident: tuple[ResidentPoint, ...]  #: what RSS holds; empty: not known


@dataclass(frozen=True, repr=False)
class Timeline(Result, OfRecording):
    """Allocated and reserved memory over time."""

    devices: tuple[TimelineDevice, ...]
    out_of_memory: tuple[TimelineOutOfMemory, ...]
    steps: tuple[TimelineStep, ...]  #: of training; empty: not known
    phases: Optional[tuple[TimelinePhase, ...]]  #: without stretches in no phase; None: more than --points
    pauses: tuple[TimelinePause, ...]
    host: Optional[HostOverTime]  #: None: not sampled
