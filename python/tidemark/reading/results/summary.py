"""What ``tidemark summary`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Advice, CallSite, CategoryBytes, OfRecording, SampledBytes, Stack
from tidemark.reading.results.ledgers import HostLedgerAt, KilledProcess, LedgerAt


@dataclass(frozen=True)
class SummaryDevice:
    """Peaks and totals of one device."""

    device: str
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]  #: the first time; None: nothing was allocated
    peak_reserved_bytes: Optional[int]  #: None on the CPU
    peak_reserved_at_ns: Optional[int]
    peak_active_bytes: Optional[int]  #: None in recordings
    peak_active_at_ns: Optional[int]
    end_allocated_bytes: int
    end_recorded_bytes: int  #: of these, in recorded blocks
    end_block_count: int
    end_reserved_bytes: Optional[int]
    end_active_bytes: Optional[int]
    baseline_bytes: Optional[int]  #: allocated before the first event; None without counters of the allocator
    allocation_count: int
    free_count: int
    unmatched_free_count: int  #: frees without a recorded allocation; included in free_count
    out_of_memory_count: int
    total_allocated_bytes: int  #: sum of all allocations
    call_sites_at_peak: tuple[CallSite, ...]  #: most bytes first; shares are of peak_allocated_bytes
    other_call_site_count: int
    other_call_sites_bytes: int
    unrecorded_at_peak_bytes: int  #: in no recorded block
    categories_at_peak: Optional[tuple[CategoryBytes, ...]]  #: where they are known
    advice: Optional[tuple[Advice, ...]]  #: most saving first


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
    cause: Optional[str]  #: "leak", "other_process", "limit", "fragmentation", "demand": as in ``explain``; None: not known
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

    rss: Optional[SampledBytes]  #: of the recorded process, as pss and those from anon to pinned
    pss: Optional[SampledBytes]
    job_process_count: Optional[int]  #: most at one time
    job_rss: Optional[SampledBytes]  #: of all processes below ``tidemark run``, as all of the job
    job_pss: Optional[SampledBytes]
    cgroup_usage: Optional[SampledBytes]  #: of the control group with the lowest limit
    cgroup_limit_bytes: Optional[int]
    cgroup_oom_kills: int  #: while the program ran
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
    lowest_available_bytes: Optional[int]  #: on the machine, without swapping
    lowest_available_at_ns: Optional[int]


@dataclass(frozen=True)
class HostExtremes:
    """All memory of the host, when most was used and at the end."""

    peak: HostLedgerAt
    end: Optional[HostLedgerAt]


@dataclass(frozen=True, repr=False)
class Summary(Result, OfRecording):
    """Peak memory of each device, and the call sites that held it."""

    devices: tuple[SummaryDevice, ...]
    out_of_memory: tuple[OutOfMemory, ...]  #: the first ten requests that failed
    out_of_memory_verdict: Optional[OutOfMemoryVerdict]  #: of the latest; None: none failed
    ledgers: tuple[LedgerExtremes, ...]  #: of devices with samples
    host: Optional[HostMemory]  #: None: not sampled
    #: page-locked memory of the host from CUDA, by its calls: requests as PyTorch rounded them; None: none was recorded
    pinned: Optional[SampledBytes]
    host_ledger: Optional[HostExtremes]  #: None: not sampled
    killed: tuple[KilledProcess, ...]  #: by the kernel, for lack of host memory
    leak_bytes_per_step: Optional[float]  #: growth by all leaks; None: none was found, or the recording has no owners


@dataclass(frozen=True)
class OtherGpu:
    """A GPU that a process allocated on beside the one that it used most."""

    device: str
    peak_allocated_bytes: int
    stack: Optional[Stack]  #: the call site that held most at that peak
    rank: Optional[int]  #: the rank whose device it is; None: no rank's


@dataclass(frozen=True)
class RankRow:
    """A process on one of its devices."""

    file: str
    rank: Optional[int]
    pid: Optional[int]
    data_loader_worker: bool
    device: Optional[str]  #: the GPU with the highest peak, else the CPU; None: nothing was allocated
    peak_allocated_bytes: int
    peak_reserved_bytes: Optional[int]
    device_used_bytes: Optional[int]  #: as the driver says, at its peak; None without samples
    other_gpus: tuple[OtherGpu, ...]
    out_of_memory: bool  #: on any device
    difference_to_median: Optional[float]  #: of the peak allocated, as a share of the group's median; None in a group of one
    outlier: bool


@dataclass(frozen=True)
class RankGroup:
    """Processes that are compared with each other."""

    device_type: str
    children: bool  #: DataLoader workers, and what other processes of the job started
    process_count: int
    median_bytes: int  #: of the peaks allocated
    outlier_limit_bytes: int  #: an outlier differs from the median by more


@dataclass(frozen=True)
class Ranks:
    """All processes of a job in one table."""

    rows: tuple[RankRow, ...]  #: by rank, those without one last
    groups: tuple[RankGroup, ...]  #: in the order of the rows


@dataclass(frozen=True, repr=False)
class JobSummary(Result):
    """The processes of a job side by side, and each one's summary."""

    ranks: Optional[Ranks]  #: None of a single recording
    recordings: tuple[Summary, ...]
