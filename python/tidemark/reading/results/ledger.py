"""What ``tidemark ledger`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import OfRecording
from tidemark.reading.results.ledgers import HostLedgerAt, KilledProcess, LedgerAt


@dataclass(frozen=True)
class LedgerPoint:
    """Totals of the ledger at a sample."""

    time_ns: int
    used_bytes: int
    allocated_bytes: Optional[int]
    cached_bytes: Optional[int]
    library_bytes: tuple[int, ...]  #: by the device's ``libraries``
    other_library_bytes: int
    context_bytes: Optional[int]
    process_bytes: Optional[int]  #: of all other processes


@dataclass(frozen=True)
class LedgerDevice:
    """One sampled device."""

    device: str
    model: Optional[str]
    total_bytes: Optional[int]
    ledger: LedgerAt
    libraries: tuple[str, ...]  #: those with the most memory at any time, at most five
    points: tuple[LedgerPoint, ...]  #: of at most 1,200 equal stretches of time, the sample with the most used bytes in each


@dataclass(frozen=True)
class HostPoint:
    """Totals of the host's ledger at a sample."""

    time_ns: int
    used_bytes: int
    main_bytes: Optional[int]  #: of the recorded process
    workers_bytes: Optional[int]  #: of DataLoader workers
    job_bytes: Optional[int]  #: of the job's other processes
    other_bytes: Optional[int]  #: of processes that are not the job's
    shmem_bytes: Optional[int]
    cache_bytes: Optional[int]
    kernel_bytes: Optional[int]  #: with sockets


@dataclass(frozen=True)
class HostLedger:
    """The host as a device of its own."""

    ledger: Optional[HostLedgerAt]  #: None: no sample had been taken by then
    killed: tuple[KilledProcess, ...]
    points: tuple[HostPoint, ...]  #: as those of devices


@dataclass(frozen=True, repr=False)
class Ledger(Result, OfRecording):
    """All memory of each GPU and of the host: PyTorch, libraries, context, processes, page cache."""

    devices: tuple[LedgerDevice, ...]
    host: Optional[HostLedger]  #: None: not sampled, or another device was asked for
