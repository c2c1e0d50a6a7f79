"""What ``tidemark compare`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Holder, OfRecording


@dataclass(frozen=True)
class StackMatching:
    """By what stacks of the two runs were matched."""

    lines: bool
    python_frames: bool
    native_frames: bool
    qualified_names: bool


@dataclass(frozen=True)
class ComparedValue:
    """A value in both runs; None where it is not known."""

    a: Optional[int]
    b: Optional[int]
    change: Optional[int]


@dataclass(frozen=True)
class OverBudget:
    """A device whose peak grew by more than was allowed."""

    device: str
    peak_allocated_bytes: ComparedValue
    excess_bytes: int


@dataclass(frozen=True)
class Budget:
    """The limit that ``--fail-over`` set, and whether it was kept."""

    limit: str
    exceeded: bool
    over: tuple[OverBudget, ...]


@dataclass(frozen=True)
class ComparedCategory:
    """Memory of one category in both runs."""

    #: "parameter", "buffer", "gradient", "per_sample_gradient", "optimizer_state", "activation", "input", "temporary",
    #: "workspace", "copy", "unknown"
    category: str
    peak_bytes: ComparedValue  #: held at the device's own peak


@dataclass(frozen=True)
class ChangeGroup:
    """Stacks that changed alike."""

    stack_count: int
    change_bytes: int  #: the sum of their changes


@dataclass(frozen=True)
class ComparedRow(Holder):
    """A stack or owner in both runs."""

    kind: str  #: "added", "removed", "grew", "shrank"
    peak_bytes: ComparedValue  #: held at the device's own peak
    peak_block_count: ComparedValue
    total_allocated_bytes: ComparedValue  #: the sum of all allocations
    allocation_count: ComparedValue


@dataclass(frozen=True)
class ComparedDevice:
    """A device in both runs."""

    device: str
    in_a: bool
    in_b: bool
    peak_allocated_bytes: ComparedValue
    peak_reserved_bytes: ComparedValue
    peak_active_bytes: ComparedValue
    allocation_count: ComparedValue
    total_allocated_bytes: ComparedValue
    unrecorded_at_peak_bytes: ComparedValue
    categories_at_peak: Optional[tuple[ComparedCategory, ...]]  #: the largest change first; in recordings that have owners
    added: ChangeGroup  #: not in A on this device
    removed: ChangeGroup  #: not in B
    grew: ChangeGroup  #: more bytes, or as many in more blocks
    shrank: ChangeGroup  #: less
    unchanged: ChangeGroup
    rows: tuple[ComparedRow, ...]  #: the largest change first
    other_row_count: int
    other_change_bytes: int


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """What changed between two runs: totals of each device, and which stacks hold more or less."""

    a: OfRecording
    b: OfRecording
    by: str  #: "peak", "traffic"
    matching: StackMatching
    budget: Optional[Budget]  #: None without --fail-over
    devices: tuple[ComparedDevice, ...]
