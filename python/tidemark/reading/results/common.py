"""What the results of all analyses have in common. Names and meanings are those of the JSON that the commands write.

``bytes`` and ``..._bytes`` are bytes, ``..._at_ns`` nanoseconds from the recording's start, ``..._share`` fractions from
0 to 1, ``..._count`` numbers of items. ``None``: not known, or not there.
"""

# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional, Union


@dataclass(frozen=True)
class Frame:
    """A call in a stack."""

    function: str
    file: Optional[str]
    line: Optional[int]
    kind: str  #: "python" or "native"
    compiled: Optional[str]  #: of torch.compile: "forward", "backward", "inference" or "unknown"
    source_nodes: Optional[str]  #: of a generated line: the nodes of the graph that it stands for


@dataclass(frozen=True)
class Stack:
    """A call stack; ``frames`` begin with the outermost."""

    label: str  #: the call site on one line
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Process:
    """The recorded process; of a snapshot little is known."""

    pid: Optional[int]
    parent_pid: Optional[int]
    rank: Optional[int]
    local_rank: Optional[int]
    world_size: Optional[int]
    hostname: Optional[str]
    command_line: Optional[str]
    python_version: Optional[str]
    torch_version: Optional[str]
    recorder_version: Optional[str]
    stack_mode: Optional[str]  #: "python", "native", "both" or "none"
    start_wall_ns: Optional[int]  #: Unix time


@dataclass(frozen=True)
class DataQualityIssue:
    """Something that is missing in the recording, or not exact."""

    id: str
    severity: str  #: "info", "warning" or "error"
    count: Optional[int]
    unit: Optional[str]
    params: dict[str, Union[int, str, list[str]]]
    text: str  #: a sentence


@dataclass(frozen=True)
class DataQuality:
    """Whether anything is missing in the recording."""

    complete: bool
    issues: tuple[DataQualityIssue, ...]


@dataclass(frozen=True)
class OfRecording:
    """Which recording a result is of."""

    file: str
    source: str  #: "recording" or "pytorch_snapshot"
    allocator_settings: Optional[str]  #: PYTORCH_CUDA_ALLOC_CONF; "" for the defaults
    process: Process
    event_count: int
    duration_ns: int
    data_quality: DataQuality
    filter: Optional[str]  #: which blocks were chosen, in words; None: all


@dataclass(frozen=True)
class Owner:
    """In a list by owner, the key that was asked for; its value is None where it is not known. The other keys are None."""

    category: Optional[str]
    component: Optional[str]
    layer: Optional[str]
    module: Optional[str]
    phase: Optional[str]
    step: Optional[str]


@dataclass(frozen=True)
class Holder(Owner):
    """What holds memory: a stack, or the owner that was asked for."""

    stack: Optional[Stack]


@dataclass(frozen=True)
class CategoryBytes:
    """Memory of one category, and how it is known."""

    category: str
    bytes: int
    exact_bytes: int  #: known from the pointers of the model's tensors
    tensor_bytes: int  #: in these tensors themselves
    block_count: int
    share: float
    known_as: str  #: "exact", "derived", "mixed" or "unknown"


@dataclass(frozen=True)
class ModuleHeldAtPeak:
    """A module, and what it held at the peak."""

    module: str
    held_at_peak_bytes: int


@dataclass(frozen=True)
class Advice:
    """A change of the program that would lower the peak."""

    kind: str
    avoidable_peak_bytes: int
    known_as: str
    held_at_peak_bytes: int
    held_at_peak_block_count: int
    modules: tuple[ModuleHeldAtPeak, ...]
    stack: Optional[Stack]


@dataclass(frozen=True)
class OtherRows:
    """Rows beyond the listed ones."""

    count: int
    bytes: int
    block_count: int


@dataclass(frozen=True)
class SampledBytes:
    """A value that was sampled: its highest sample, and the last."""

    peak_bytes: int
    peak_at_ns: int
    end_bytes: int
