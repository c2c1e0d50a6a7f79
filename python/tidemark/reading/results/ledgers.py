"""All memory of a GPU or of the host at one time, and processes that the kernel killed for lack of it."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class LedgerLine:
    """One part of the memory that is used on a device."""

    part: str  #: "pytorch", "library", "context", "process"
    bytes: Optional[int]
    name: Optional[str]  #: of a library or process
    pid: Optional[int]  #: of a process
    kind: Optional[str]  #: "recorded", "job", "other", "ended", "other_namespace": of a process


@dataclass(frozen=True)
class LedgerCaveat:
    """Why a ledger may not add up."""

    #: "no_samples", "device_not_sampled", "no_sample_yet", "used_unknown", "no_events", "reserved_unknown",
    #: "allocator_unknown", "libraries_in_context", "driver_calls_missing", "processes_unknown", "process_not_listed",
    #: "process_bytes_unknown", "process_matched", "process_below_known", "other_bytes_unknown", "during_driver_call",
    #: "transient_peak"
    kind: str
    text: str


@dataclass(frozen=True)
class LedgerAt:
    """A device's memory at one time; the lines and what is unexplained add up to what is used."""

    time_ns: Optional[int]  #: of the sample; None: nothing was recorded
    used_bytes: Optional[int]  #: as the driver says; None without a sample
    lines: tuple[LedgerLine, ...]
    unexplained_bytes: Optional[int]  #: may be negative
    allocated_bytes: Optional[int]  #: by PyTorch
    cached_bytes: Optional[int]  #: by PyTorch: reserved, but not allocated
    managed_bytes: Optional[int]  #: not in the sum; None where no driver calls were recorded, as the next
    pinned_host_bytes: Optional[int]  #: not in the sum
    processes_sampled_at_ns: Optional[int]  #: when the list of processes was read
    transient_peak_bytes: Optional[int]  #: at the peak: more that was used during a long call of the driver
    caveats: tuple[LedgerCaveat, ...]  #: what is not known, and why


@dataclass(frozen=True)
class HostLine:
    """One part of the memory that is used on the host."""

    part: str  #: "process", "job_processes", "other_processes", "shared_memory", "page_cache", "kernel", "sockets"
    bytes: Optional[int]
    pid: Optional[int]  #: of a process
    process_count: Optional[int]  #: of several that are one line
    text: str


@dataclass(frozen=True)
class CgroupEvents:
    """How often a control group met its bounds."""

    low: Optional[int]
    high: Optional[int]
    max: Optional[int]
    oom: Optional[int]
    under_oom: Optional[bool]


@dataclass(frozen=True)
class HostProcess:
    """A process of the job."""

    pid: int
    parent_pid: Optional[int]
    #: "other", "main", "rank", "data_worker", "resource_tracker", "fork_server", "compile_worker", "launcher", "child"
    role: str
    recorded: bool
    number: Optional[int]  #: of a rank or DataLoader worker
    count: Optional[int]  #: of these
    name: Optional[str]
    rss_bytes: Optional[int]
    anon_bytes: Optional[int]
    file_bytes: Optional[int]
    shmem_bytes: Optional[int]
    swap_bytes: Optional[int]
    locked_bytes: Optional[int]
    pinned_bytes: Optional[int]
    pss_bytes: Optional[int]  #: None where it was not read with this sample
    private_bytes: Optional[int]


@dataclass(frozen=True)
class HostCaveat:
    """Why a ledger of the host may not add up."""

    kind: str  #: "shared_pages", "estimated_pages", "anon_unknown", "parts_unknown"
    text: str


@dataclass(frozen=True)
class HostLedgerAt:
    """The host's memory at one time; the lines and what is unexplained add up to what is used."""

    time_ns: int
    scope: str  #: "machine", "cgroup"
    used_bytes: Optional[int]
    limit_bytes: Optional[int]  #: of the machine: all its memory
    machine_available_bytes: Optional[int]  #: without swapping
    lines: tuple[HostLine, ...]
    unexplained_bytes: Optional[int]  #: may be negative
    swap_bytes: Optional[int]  #: not in the sum, or in several lines, as the next three
    locked_bytes: Optional[int]
    pinned_bytes: Optional[int]
    cuda_pinned_bytes: Optional[int]
    cgroup_events: CgroupEvents  #: since the group exists
    processes: tuple[HostProcess, ...]  #: of the job, at most 32, most resident bytes first
    other_process_count: int
    other_processes_rss_bytes: Optional[int]
    caveats: tuple[HostCaveat, ...]


@dataclass(frozen=True)
class KilledProcess:
    """A process of the job that the kernel's OOM killer ended."""

    time_ns: int
    process: HostProcess
    evidence: str  #: "kernel_log", "exit_signal", "vanished": how it is known
    scope: str  #: "unknown", "cgroup", "machine": whose memory was short
    cgroup_usage_bytes: Optional[int]  #: the most of the samples shortly before
    cgroup_limit_bytes: Optional[int]
    text: str  #: a sentence
    details: tuple[str, ...]  #: what it held, how that is known, and who held most
    before: Optional[HostLedgerAt]  #: the host in the last sample before
