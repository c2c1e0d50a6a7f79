"""What ``tidemark breakdown`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import CategoryBytes, OfRecording, Owner


@dataclass(frozen=True)
class BreakdownPart:
    """The blocks of an owner that have category, phase and certainty in common."""

    #: "parameter", "buffer", "gradient", "per_sample_gradient", "optimizer_state", "activation", "input", "temporary",
    #: "workspace", "copy", "unknown"
    category: str
    phase: str  #: "data", "forward", "backward", "recomputation", "optimizer", "other"
    confidence: str  #: "exact", "estimated", "unknown"
    bytes: int
    block_count: int


@dataclass(frozen=True)
class BreakdownRow(Owner):
    """An owner of memory."""

    bytes: int
    block_count: int
    share: float  #: of allocated_bytes
    parts: tuple[BreakdownPart, ...]  #: that add up to the row


@dataclass(frozen=True)
class OtherRows:
    """Rows beyond the listed ones."""

    count: int
    bytes: int
    block_count: int


@dataclass(frozen=True)
class BreakdownDevice:
    """What a device held, by category and by the owners that were asked for; the others are None."""

    device: str
    at_ns: Optional[int]  #: None: nothing was allocated
    allocated_bytes: int
    unrecorded_bytes: int  #: of these, in no recorded block
    categories: tuple[CategoryBytes, ...]  #: most bytes first; unknown last
    components: Optional[tuple[BreakdownRow, ...]]  #: most bytes first
    other_components: Optional[OtherRows]
    layers: Optional[tuple[BreakdownRow, ...]]  #: most bytes first
    other_layers: Optional[OtherRows]
    modules: Optional[tuple[BreakdownRow, ...]]  #: most bytes first
    other_modules: Optional[OtherRows]
    phases: Optional[tuple[BreakdownRow, ...]]  #: most bytes first
    other_phases: Optional[OtherRows]
    steps: Optional[tuple[BreakdownRow, ...]]  #: most bytes first
    other_steps: Optional[OtherRows]


@dataclass(frozen=True, repr=False)
class Breakdown(Result, OfRecording):
    """Whose memory it is: parameters, gradients, activations, ..."""

    devices: tuple[BreakdownDevice, ...]
