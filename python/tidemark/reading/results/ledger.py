"""``run.ledger()``: all memory of a GPU by owner."""

from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import OfRecording
from tidemark.reading.results.host import HostLedger


@dataclass(frozen=True)
class LedgerLine:
    """One part of the memory that is used on a device."""

    part: str
    bytes: Optional[int]
    name: Optional[str]  #: of a library or process
    pid: Optional[int]
    kind: Optional[str]  #: of a process


@dataclass(frozen=True)
class LedgerCaveat:
    """Why a ledger may not add up."""

    kind: str
    text: str


@dataclass(frozen=True)
class LedgerAt:
    """A device's memory at one time; the lines and what is unexplained add up to what is used."""

    time_ns: Optional[int]
    used_bytes: Optional[int]
    lines: tuple[LedgerLine, ...]
    unexplained_bytes: Optional[int]
    allocated_bytes: Optional[int]
    cached_bytes: Optional[int]
    managed_bytes: Optional[int]
    pinned_host_bytes: Optional[int]
    processes_sampled_at_ns: Optional[int]
    transient_peak_bytes: Optional[int]
    caveats: tuple[LedgerCaveat, ...]


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
    process_bytes: Optional[int]


@dataclass(frozen=True)
class LedgerDevice:
    """One sampled device."""

    device: str
    model: Optional[str]
    total_bytes: Optional[int]
    ledger: LedgerAt
    libraries: tuple[str, ...]
    points: tuple[LedgerPoint, ...]


@dataclass(frozen=True, repr=False)
class Ledger(Result, OfRecording):
    """All memory of each GPU and of the host: PyTorch, libraries, context, processes, page cache."""

    devices: tuple[LedgerDevice, ...]
    host: Optional[HostLedger]
