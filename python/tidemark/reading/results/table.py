"""What ``tidemark table`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Holder, OfRecording, Stack


@dataclass(frozen=True)
class TableRow(Holder):
    """A group of blocks; what it is about is in the field that belongs to ``by``."""

    bytes: int
    block_count: int
    share: float  #: of allocated_bytes
    #: stacks that differ in the called modules alone, such as layers; the one with most bytes is shown
    stack_count: Optional[int]
    block_bytes: Optional[int]  #: by size
    device: Optional[str]  #: by device
    at_ns: Optional[int]  #: by device
    tid: Optional[int]  #: by thread; None: not known
    thread_name: Optional[str]  #: by thread
    stream: Optional[int]  #: by stream: its handle; 0: the default stream
    #: by pool: its id; [0, 0] is the default pool, others belong to CUDA graphs and torch.cuda.MemPool
    pool: Optional[tuple[int, ...]]
    most_by: Optional[Stack]  #: by pool: the stack with most of these bytes
    annotation: Optional[str]  #: by annotation: text on the block, else the innermost range; None: none


@dataclass(frozen=True)
class TableSection:
    """The groups on one device; by device, on all."""

    device: Optional[str]  #: None by device
    at_ns: Optional[int]
    allocated_bytes: int
    unrecorded_bytes: int  #: of these, in no recorded block
    rows: tuple[TableRow, ...]  #: most bytes first; by device, in the order of devices
    other_row_count: int
    other_bytes: int
    other_block_count: int


@dataclass(frozen=True, repr=False)
class Table(Result, OfRecording):
    """Live allocations at a point in time, in groups."""

    #: "stack", "size", "device", "thread", "stream", "pool", "annotation", "category", "component", "layer", "module", "phase",
    #: "step"
    by: str
    sections: tuple[TableSection, ...]
