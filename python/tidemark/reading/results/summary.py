"""``run.summary()`` and ``job.summary()``: peaks, and what held them."""

from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Advice, CategoryBytes, Holder, OfRecording, SampledBytes, Stack
from tidemark.reading.results.host import HostExtremes, KilledProcess
from tidemark.reading.results.ledger import LedgerAt


@dataclass(frozen=True)
class CallSite(Holder):
    """A place in the program, or the owner that was asked for, and what it held at the peak."""

    bytes: int
    block_count: int
    stack_count: int
    share: float


@dataclass(frozen=True)
class SummaryDevice:
    """Peaks and totals of one device."""

    device: str
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    peak_reserved_bytes: Optional[int]
    peak_reserved_at_ns: Optional[int]
    peak_active_bytes: Optional[int]
    peak_active_at_ns: Optional[int]
    end_allocated_bytes: int
    end_recorded_bytes: int
    end_block_count: int
    end_reserved_bytes: Optional[int]
    end_active_bytes: Optional[int]
    baseline_bytes: Optional[int]
    allocation_count: int
    free_count: int
    unmatched_free_count: int
    out_of_memory_count: int
    total_allocated_bytes: int
    call_sites_at_peak: tuple[CallSite, ...]
    other_call_site_count: int
    other_call_sites_bytes: int
    unrecorded_at_peak_bytes: int
    categories_at_peak: Optional[tuple[CategoryBytes, ...]]
    advice: Optional[tuple[Advice, ...]]


@dataclass(frozen=True)
class OutOfMemory:
    """A request that failed."""

    device: str
    time_ns: int
    requested_bytes: int
    allocated_bytes: Optional[int]
    reserved_bytes: Optional[int]
    stack: Optional[Stack]


@dataclass(frozen=True)
class OutOfMemoryVerdict:
    """Why the latest request failed, in short."""

    device: str
    time_ns: int
    requested_bytes: int
    device_free_bytes: Optional[int]
    cause: Optional[str]
    text: str


@dataclass(frozen=True)
class LedgerExtremes:
    """All memory of a GPU, when most was used and at the end."""

    device: str
    model: Optional[str]
    total_bytes: Optional[int]
    peak: LedgerAt
    end: Optional[LedgerAt]


@dataclass(frozen=True)
class HostMemory:
    """Memory of the host: of the process, of the job, and of the control group."""

    rss: Optional[SampledBytes]
    pss: Optional[SampledBytes]
    job_process_count: Optional[int]
    job_rss: Optional[SampledBytes]
    job_pss: Optional[SampledBytes]
    cgroup_usage: Optional[SampledBytes]
    cgroup_limit_bytes: Optional[int]
    cgroup_oom_kills: int
    anon: Optional[SampledBytes]
    file: Optional[SampledBytes]
    shmem: Optional[SampledBytes]
    swap: Optional[SampledBytes]
    locked: Optional[SampledBytes]
    pinned: Optional[SampledBytes]
    job_anon: Optional[SampledBytes]
    job_file: Optional[SampledBytes]
    job_shmem: Optional[SampledBytes]
    job_swap: Optional[SampledBytes]
    lowest_available_bytes: Optional[int]
    lowest_available_at_ns: Optional[int]


@dataclass(frozen=True, repr=False)
class Summary(Result, OfRecording):
    """Peak memory of each device, and the call sites that held it."""

    devices: tuple[SummaryDevice, ...]
    out_of_memory: tuple[OutOfMemory, ...]
    out_of_memory_verdict: Optional[OutOfMemoryVerdict]
    ledgers: tuple[LedgerExtremes, ...]
    host: Optional[HostMemory]
    host_ledger: Optional[HostExtremes]
    killed: tuple[KilledProcess, ...]


@dataclass(frozen=True)
class RankRow:
    """A process on one of its devices."""

    file: str
    rank: Optional[int]
    pid: Optional[int]
    data_loader_worker: bool
    device: Optional[str]
    peak_allocated_bytes: int
    peak_reserved_bytes: Optional[int]
    device_used_bytes: Optional[int]
    out_of_memory: bool
    difference_to_median: Optional[float]
    outlier: bool


@dataclass(frozen=True)
class RankGroup:
    """Processes that are compared with each other."""

    device_type: str
    children: bool
    process_count: int
    median_bytes: int
    outlier_limit_bytes: int


@dataclass(frozen=True)
class Ranks:
    """All processes of a job in one table."""

    rows: tuple[RankRow, ...]
    groups: tuple[RankGroup, ...]


@dataclass(frozen=True, repr=False)
class JobSummary(Result):
    """The processes of a job side by side, and each one's summary."""

    ranks: Optional[Ranks]  #: None of a single recording
    recordings: tuple[Summary, ...]
