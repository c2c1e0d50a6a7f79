"""What the results of several commands have. Names and meanings are those of the JSON that commands write.

``bytes`` and ``..._bytes`` are bytes, ``..._at_ns`` nanoseconds from the recording's start, ``..._share`` fractions from
0 to 1, ``..._count`` numbers of items. ``None``: not known, or not there.
"""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional, Union


@dataclass(frozen=True)
class Process:
    """The recorded process; of a snapshot little is known."""

    pid: Optional[int]
    parent_pid: Optional[int]
    rank: Optional[int]  #: of the launcher, as the next two; None without one
    local_rank: Optional[int]
    world_size: Optional[int]
    hostname: Optional[str]
    command_line: Optional[str]
    python_version: Optional[str]
    torch_version: Optional[str]
    stack_mode: Optional[str]  #: "python", "native", "both" or "none"
    recorder_version: Optional[str]
    start_wall_ns: Optional[int]  #: Unix time


@dataclass(frozen=True)
class DataQualityIssue:
    """Something that is missing in the recording, or not exact."""

    id: str
    severity: str  #: "info", "warning", "error"
    count: Optional[int]  #: in ``unit``
    #: "allocations", "blocks", "bytes", "calls", "definitions", "entries", "events", "fields", "frames", "frees", "losses",
    #: "occurrences", "pauses", "processes", "records", "samples", "segments", "stacks", "steps", "threads"
    unit: Optional[str]
    params: dict[str, Union[int, str, dict[str, int]]]  #: what the text says beside the count
    text: str  #: a sentence


@dataclass(frozen=True)
class DataQuality:
    """Whether anything is missing in the recording."""

    complete: bool  #: no event is missing
    issues: tuple[DataQualityIssue, ...]  #: worst first


@dataclass(frozen=True)
class OfRecording:
    """Which recording a result is of."""

    file: str  #: path as given
    source: str  #: "recording", "pytorch_snapshot"
    allocator_settings: Optional[str]  #: PYTORCH_CUDA_ALLOC_CONF; "" for the defaults; None: unknown
    process: Process
    event_count: int  #: events in the recording, or entries of the snapshot's trace
    duration_ns: int  #: from the start to the last event
    data_quality: DataQuality
    simulated_gpu: Optional[str]  #: name of the GPU that ``tidemark plan`` simulated; None: the program ran without it
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
class Frame:
    """A call in a stack."""

    function: str  #: name; native without a symbol: library and offset
    file: Optional[str]  #: source file of Python, library of native code
    line: Optional[int]  #: of Python
    kind: str  #: "python", "native"
    compiled: Optional[str]  #: "forward", "backward", "inference", "unknown": of torch.compile: which graph
    source_nodes: Optional[str]  #: of a generated line: the nodes of the graph that it stands for


@dataclass(frozen=True)
class Stack:
    """A call stack; ``frames`` begin with the outermost."""

    label: str  #: the call site on one line
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Holder(Owner):
    """What holds memory: a stack, or the owner that was asked for."""

    stack: Optional[Stack]  #: None: not recorded


@dataclass(frozen=True)
class CallSite(Holder):
    """A place in the program, or the owner that was asked for, and what it held at the peak."""

    bytes: int
    block_count: int
    stack_count: int
    share: float  #: of what was allocated


@dataclass(frozen=True)
class CategoryBytes:
    """Memory of one category, and the confidence of that category."""

    #: "parameter", "buffer", "gradient", "per_sample_gradient", "optimizer_state", "activation", "input", "temporary",
    #: "workspace", "copy", "unknown"
    category: str
    bytes: int
    exact_bytes: int  #: known from the pointers of the model's tensors
    tensor_bytes: int  #: in these tensors themselves
    block_count: int
    share: float  #: of what was allocated
    confidence: str  #: "exact", "estimated", "unknown": of all these blocks


@dataclass(frozen=True)
class ModuleHeldAtPeak:
    """A module, and what it held at the peak."""

    module: str
    held_at_peak_bytes: int


@dataclass(frozen=True)
class Advice:
    """A change of the program that would lower the peak."""

    #: "checkpoint_activations", "gradients_in_forward", "frozen_gradients", "frozen_optimizer_state", "large_optimizer_state",
    #: "attention_matrices", "logits", "logits_upcast", "gradient_buckets", "gathered_parameters", "checkpoint_copies",
    #: "loaded_checkpoint", "model_copies", "retained_graph", "inference_with_autograd", "unused_gradients",
    #: "forwards_before_backward", "checkpoint_each_layer", "optimizer_temporaries", "kept_over_steps", "failed_call",
    #: "repeated_concatenation", "collected_results", "held_results"
    kind: str
    avoidable_peak_bytes: int  #: by which the peak would be lower
    confidence: str  #: "exact", "estimated", "unknown": the least certain of the blocks concerned
    held_at_peak_bytes: int  #: by the blocks concerned
    held_at_peak_block_count: int
    modules: tuple[ModuleHeldAtPeak, ...]  #: that are concerned, most bytes first
    stack: Optional[Stack]  #: of most of these bytes


@dataclass(frozen=True)
class SampledBytes:
    """A value that was sampled: its highest sample, and the last."""

    peak_bytes: int
    peak_at_ns: int
    end_bytes: Optional[int]  #: None: last read more than 10 s before the end
    last_at_ns: int  #: when the last one was read
