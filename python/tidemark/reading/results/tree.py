"""What ``tidemark tree`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Frame, OfRecording


@dataclass(frozen=True)
class HiddenNodes:
    """Callees that are left out because they hold little, or for their depth."""

    count: int
    bytes: int
    block_count: int


@dataclass(frozen=True)
class TreeNode(Frame):
    """A call, and what it and its callees hold."""

    bytes: int  #: with callees
    block_count: int
    own_bytes: int  #: of allocations made in this frame itself
    own_block_count: int
    share: float  #: of what the section has allocated, or of its blocks
    hidden: HiddenNodes  #: callees that are not listed
    children: "tuple[TreeNode, ...]"  #: largest first


@dataclass(frozen=True)
class TreeSection:
    """The call tree of one device."""

    device: str
    at_ns: Optional[int]
    allocated_bytes: int
    unrecorded_bytes: int  #: of these, in no recorded block
    no_stack_bytes: int  #: in recorded blocks without a stack
    no_stack_block_count: int
    block_count: int  #: live recorded blocks
    hidden: HiddenNodes  #: roots that are not listed
    roots: tuple[TreeNode, ...]  #: outermost frames, largest first


@dataclass(frozen=True, repr=False)
class Tree(Result, OfRecording):
    """Live allocations at a point in time, as a call tree."""

    by: str  #: "bytes", "count"
    sections: tuple[TreeSection, ...]
