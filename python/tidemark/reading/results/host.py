"""The host's memory by what holds it, and processes that the kernel killed for lack of it."""

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class HostLine:
    """One part of the memory that is used on the host."""

    part: str
    bytes: Optional[int]
    pid: Optional[int]  #: of a process
    process_count: Optional[int]  #: of several that are one line
    text: str


@dataclass(frozen=True)
class HostProcess:
    """A process of the job."""

    pid: int
    parent_pid: Optional[int]
    role: str
    recorded: bool
    number: Optional[int]  #: of a rank or DataLoader worker
    count: Optional[int]
    name: Optional[str]
    rss_bytes: Optional[int]
    anon_bytes: Optional[int]
    file_bytes: Optional[int]
    shmem_bytes: Optional[int]
    swap_bytes: Optional[int]
    locked_bytes: Optional[int]
    pinned_bytes: Optional[int]
    pss_bytes: Optional[int]
    private_bytes: Optional[int]


@dataclass(frozen=True)
class CgroupEvents:
    """How often a control group met its bounds."""

    low: Optional[int]
    high: Optional[int]
    max: Optional[int]
    oom: Optional[int]
    under_oom: Optional[bool]


@dataclass(frozen=True)
class HostCaveat:
    """Why a ledger of the host may not add up."""

    kind: str
    text: str


@dataclass(frozen=True)
class HostLedgerAt:
    """The host's memory at one time; the lines and what is unexplained add up to what is used."""

    time_ns: int
    scope: str
    used_bytes: Optional[int]
    limit_bytes: Optional[int]
    machine_available_bytes: Optional[int]
    lines: tuple[HostLine, ...]
    unexplained_bytes: Optional[int]
    swap_bytes: Optional[int]
    locked_bytes: Optional[int]
    pinned_bytes: Optional[int]
    cuda_pinned_bytes: Optional[int]
    cgroup_events: CgroupEvents
    processes: tuple[HostProcess, ...]
    other_process_count: int
    other_processes_rss_bytes: Optional[int]
    caveats: tuple[HostCaveat, ...]


@dataclass(frozen=True)
class KilledProcess:
    """A process of the job that the kernel's OOM killer ended."""

    time_ns: int
    process: HostProcess
    evidence: str
    scope: str
    cgroup_usage_bytes: Optional[int]
    cgroup_limit_bytes: Optional[int]
    text: str
    details: tuple[str, ...]
    before: Optional[HostLedgerAt]


@dataclass(frozen=True)
class HostPoint:
    """Totals of the host's ledger at a sample."""

    time_ns: int
    used_bytes: int
    main_bytes: Optional[int]
    workers_bytes: Optional[int]
    job_bytes: Optional[int]
    other_bytes: Optional[int]
    shmem_bytes: Optional[int]
    cache_bytes: Optional[int]
    kernel_bytes: Optional[int]


@dataclass(frozen=True)
class HostLedger:
    """The host as a device of its own."""

    ledger: Optional[HostLedgerAt]
    killed: tuple[KilledProcess, ...]
    points: tuple[HostPoint, ...]


@dataclass(frozen=True)
class HostExtremes:
    """All memory of the host, when most was used and at the end."""

    peak: HostLedgerAt
    end: Optional[HostLedgerAt]
