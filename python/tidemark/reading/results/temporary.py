"""What ``tidemark temporary`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Holder, OfRecording


@dataclass(frozen=True)
class TemporaryRow(Holder):
    """Short-lived allocations of one stack or owner."""

    bytes: int  #: the sum of their sizes
    share: Optional[float]  #: of total_allocated_bytes
    allocation_count: int
    largest_bytes: int


@dataclass(frozen=True)
class TemporaryDevice:
    """Short-lived allocations on one device, and its peak without them."""

    device: str
    allocation_count: int
    total_allocated_bytes: int  #: sum of all allocations
    temporary_count: int
    temporary_bytes: int  #: the sum of their sizes
    temporary_share: Optional[float]  #: of total_allocated_bytes
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    reduced_peak_bytes: int  #: had these blocks never been allocated
    reduced_peak_at_ns: Optional[int]  #: None: nothing else was allocated
    avoidable_peak_bytes: int  #: at most what avoiding them saves
    rows: tuple[TemporaryRow, ...]  #: most bytes first
    other_row_count: int
    other_allocation_count: int
    other_bytes: int


@dataclass(frozen=True, repr=False)
class Temporary(Result, OfRecording):
    """Short-lived allocations by stack, and the peak without them."""

    within: int  #: allocations on the device until the free, at most
    by: str  #: "stack", "category", "component", "layer", "module", "phase", "step"
    devices: tuple[TemporaryDevice, ...]
