"""``run.breakdown()``, ``.table()``, ``.tree()`` and ``.temporary()``: blocks by owner, group, caller and lifetime."""

from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import CategoryBytes, Frame, Holder, OfRecording, OtherRows, Owner


@dataclass(frozen=True)
class BreakdownPart:
    """The blocks of an owner that have category, phase and certainty in common."""

    category: str
    phase: str
    known_as: str
    bytes: int
    block_count: int


@dataclass(frozen=True)
class BreakdownRow(Owner):
    """An owner of memory."""

    bytes: int
    block_count: int
    share: float
    parts: tuple[BreakdownPart, ...]


@dataclass(frozen=True)
class BreakdownDevice:
    """What a device held, by category and by the owners that were asked for; the others are None."""

    device: str
    at_ns: Optional[int]
    allocated_bytes: int
    unrecorded_bytes: int
    categories: tuple[CategoryBytes, ...]
    components: Optional[tuple[BreakdownRow, ...]]
    other_components: Optional[OtherRows]
    layers: Optional[tuple[BreakdownRow, ...]]
    other_layers: Optional[OtherRows]
    modules: Optional[tuple[BreakdownRow, ...]]
    other_modules: Optional[OtherRows]
    phases: Optional[tuple[BreakdownRow, ...]]
    other_phases: Optional[OtherRows]
    steps: Optional[tuple[BreakdownRow, ...]]
    other_steps: Optional[OtherRows]


@dataclass(frozen=True, repr=False)
class Breakdown(Result, OfRecording):
    """Whose memory it is: parameters, gradients, activations, ..."""

    _has_tables = True
    devices: tuple[BreakdownDevice, ...]


@dataclass(frozen=True)
class TableRow(Holder):
    """A group of blocks; what it is about is in the field that belongs to ``by``."""

    bytes: int
    block_count: int
    share: float
    block_bytes: Optional[int]  #: by size
    device: Optional[str]  #: by device
    at_ns: Optional[int]  #: by device
    tid: Optional[int]  #: by thread
    thread_name: Optional[str]  #: by thread
    stream: Optional[int]  #: by stream: its handle
    pool: Optional[tuple[int, ...]]  #: by pool: its id
    annotation: Optional[str]  #: by annotation


@dataclass(frozen=True)
class TableSection:
    """The groups on one device; by device, on all."""

    device: Optional[str]
    at_ns: Optional[int]
    allocated_bytes: int
    unrecorded_bytes: int
    rows: tuple[TableRow, ...]
    other_row_count: int
    other_bytes: int
    other_block_count: int


@dataclass(frozen=True, repr=False)
class Table(Result, OfRecording):
    """Live allocations at a point in time, in groups."""

    _has_tables = True
    by: str
    sections: tuple[TableSection, ...]


@dataclass(frozen=True)
class HiddenNodes:
    """Callers that are left out because they hold little, or for their depth."""

    count: int
    bytes: int
    block_count: int


@dataclass(frozen=True)
class TreeNode(Frame):
    """A call, and what it and its callees hold."""

    bytes: int
    block_count: int
    own_bytes: int
    own_block_count: int
    share: float
    hidden: HiddenNodes
    children: "tuple[TreeNode, ...]"


@dataclass(frozen=True)
class TreeSection:
    """The call tree of one device."""

    device: str
    at_ns: Optional[int]
    allocated_bytes: int
    unrecorded_bytes: int
    no_stack_bytes: int
    no_stack_block_count: int
    block_count: int
    hidden: HiddenNodes
    roots: tuple[TreeNode, ...]


@dataclass(frozen=True, repr=False)
class Tree(Result, OfRecording):
    """Live allocations at a point in time, as a call tree."""

    by: str
    sections: tuple[TreeSection, ...]


@dataclass(frozen=True)
class TemporaryRow(Holder):
    """Short-lived allocations of one stack or owner."""

    bytes: int
    share: Optional[float]
    allocation_count: int
    largest_bytes: int


@dataclass(frozen=True)
class TemporaryDevice:
    """Short-lived allocations on one device, and its peak without them."""

    device: str
    allocation_count: int
    total_allocated_bytes: int
    temporary_count: int
    temporary_bytes: int
    temporary_share: Optional[float]
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    reduced_peak_bytes: int
    reduced_peak_at_ns: Optional[int]
    avoidable_peak_bytes: int
    rows: tuple[TemporaryRow, ...]
    other_row_count: int
    other_allocation_count: int
    other_bytes: int


@dataclass(frozen=True, repr=False)
class Temporary(Result, OfRecording):
    """Short-lived allocations by stack, and the peak without them."""

    _has_tables = True
    within: int
    by: str
    devices: tuple[TemporaryDevice, ...]
