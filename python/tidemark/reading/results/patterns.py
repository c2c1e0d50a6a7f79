"""What ``tidemark patterns`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Advice, OfRecording, Stack


@dataclass(frozen=True)
class StepsFound:
    """How training steps were told, and how many there are."""

    source: str  #: "none", "given", "annotation", "optimizer", "stack", "sizes"
    count: int


@dataclass(frozen=True)
class LifetimeAtPeak:
    """What blocks of one kind of lifetime held at the peak."""

    lifetime: str  #: "never_freed", "temporary", "across_steps", "within_step", "freed"
    bytes: int
    block_count: int


@dataclass(frozen=True)
class PatternRow:
    """A stack whose blocks have the pattern."""

    held_at_peak_bytes: int  #: and would not be
    held_at_peak_block_count: int
    block_count: int  #: in the whole recording, as the next
    total_bytes: int
    stack: Optional[Stack]


@dataclass(frozen=True)
class Pattern:
    """Blocks that were kept longer than they were needed, and the peak without that."""

    block_count: int  #: in the whole recording
    held_at_peak_bytes: int
    reduced_peak_bytes: int  #: had each of these blocks been freed earlier
    reduced_peak_at_ns: Optional[int]
    avoidable_peak_bytes: int  #: at most what that saves
    rows: tuple[PatternRow, ...]  #: most bytes at the peak first
    other_row_count: int
    other_held_at_peak_bytes: int


@dataclass(frozen=True)
class PatternsDevice:
    """The patterns of one device."""

    device: str
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    unrecorded_at_peak_bytes: int  #: in no recorded block
    lifetimes_at_peak: tuple[LifetimeAtPeak, ...]  #: those that held memory
    advice: tuple[Advice, ...]  #: most saving first
    #: alive when the next block of the stack is allocated, a step later; None without steps
    kept_into_next_step: Optional[Pattern]
    #: freed right after another allocation: perhaps the input of an operation that could be in place
    freed_after_allocation: Pattern


@dataclass(frozen=True, repr=False)
class Patterns(Result, OfRecording):
    """Avoidable peak memory, by lifetime of the allocations."""

    steps: StepsFound  #: as in ``leaks``
    devices: tuple[PatternsDevice, ...]
