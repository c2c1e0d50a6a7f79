"""What ``tidemark explain`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import CallSite, Holder, OfRecording, Stack
from tidemark.reading.results.ledgers import KilledProcess


@dataclass(frozen=True)
class RequestThread:
    """The thread of a request."""

    tid: int
    name: Optional[str]


@dataclass(frozen=True)
class FailedRequest:
    """The request that failed."""

    bytes: int
    segment_bytes: Optional[int]  #: of a new segment for it
    expandable: Optional[bool]  #: expandable segments were in force
    stack: Optional[Stack]
    thread: Optional[RequestThread]
    stream: Optional[int]  #: handle; 0: the default stream
    pool: Optional[tuple[int, ...]]  #: id of a private pool


@dataclass(frozen=True)
class CachedMemory:
    """Free blocks that the allocator kept."""

    bytes: int
    block_count: int
    largest_block_bytes: int


@dataclass(frozen=True)
class Cache:
    """Free memory of the allocator when the request failed, by whether the request could use it."""

    usable: CachedMemory  #: in segments of its stream, pool and kind
    other_streams: CachedMemory
    other_pools: CachedMemory
    other_segment_kinds: CachedMemory  #: for small blocks where the request is large, or the other way round
    pending_free_bytes: int  #: freed by the program, still used by another stream
    releasable_in_private_pools_bytes: int  #: in segments that are free as a whole
    releasable_in_default_pool_bytes: int  #: likewise; kept while a CUDA graph is captured


@dataclass(frozen=True)
class MemoryLimit:
    """Between which values the limit lies that was met."""

    at_least_bytes: int
    below_bytes: int


@dataclass(frozen=True)
class Cause:
    """A cause of a failure, and how much memory it explains."""

    cause: str  #: "leak", "other_process", "limit", "fragmentation", "demand"
    bytes: int
    certain: bool
    text: str  #: the numbers that show it


@dataclass(frozen=True)
class LeakAtFailure:
    """A leak at the time of a failure."""

    bytes_per_step: float
    held_bytes: int
    held_block_count: int
    stack: Optional[Stack]


@dataclass(frozen=True)
class LeakAnalysis:
    """Whether memory grew from step to step before the failure."""

    verdict: str  #: "leak", "no_leak", "insufficient_data"
    step_count: int
    leaked_bytes: int  #: of what leaked, alive at the failure
    leaks: tuple[LeakAtFailure, ...]  #: fastest first


@dataclass(frozen=True)
class Fix:
    """A change that would have let the request succeed."""

    #: "free_blocks", "stop_leak", "free_device", "raise_limit", "empty_private_pool", "empty_cache_before", "same_stream",
    #: "smaller_request", "expandable_segments", "settings"
    kind: str
    bytes: int  #: how much it frees, gives or asks for less
    certain: bool
    block_count: Optional[int]  #: free_blocks: how many to free
    stack_block_count: Optional[int]  #: free_blocks: of so many live blocks of the stack
    stack: Optional[Stack]  #: of free_blocks
    text: str  #: what to change
    check: str  #: how to verify it


@dataclass(frozen=True)
class TopAllocation(Holder):
    """What held memory when the request failed."""

    bytes: int
    block_count: int
    share: float  #: of allocated_bytes
    oldest_at_ns: int  #: when the first of these blocks was allocated
    newest_at_ns: int


@dataclass(frozen=True)
class ModuleHeld:
    """A module, and what it held."""

    module: str
    held_bytes: int


@dataclass(frozen=True)
class FailureAdvice:
    """A change of the program that would need less memory at the failure."""

    #: "checkpoint_activations", "gradients_in_forward", "frozen_gradients", "frozen_optimizer_state", "large_optimizer_state",
    #: "attention_matrices", "logits", "logits_upcast", "gradient_buckets", "gathered_parameters", "checkpoint_copies",
    #: "loaded_checkpoint", "model_copies", "retained_graph", "inference_with_autograd", "unused_gradients",
    #: "forwards_before_backward", "checkpoint_each_layer", "optimizer_temporaries", "kept_over_steps", "failed_call",
    #: "repeated_concatenation", "collected_results", "held_results"
    kind: str
    held_bytes: int  #: that it would not hold
    confidence: str  #: "exact", "estimated", "unknown": the least certain of the blocks concerned
    has_request: bool  #: the request was for another one of these blocks
    suffices: Optional[bool]  #: is at least what was missing; None: not known
    block_count: int
    modules: tuple[ModuleHeld, ...]  #: that are concerned, most bytes first
    stack: Optional[Stack]  #: of most of these bytes


@dataclass(frozen=True)
class Failure:
    """An out-of-memory error, or several equal ones."""

    device: str
    message: str  #: what failed and why, a sentence
    cause: Optional[str]  #: "leak", "other_process", "limit", "fragmentation", "demand": the main one; None: not known
    count: int  #: equal errors
    first_at_ns: int
    last_at_ns: int
    request: FailedRequest
    allocated_bytes: int  #: then
    reserved_bytes: Optional[int]
    cached_bytes: Optional[int]  #: reserved, and in no block
    device_free_bytes: Optional[int]  #: as the driver reported, or as of the last sample
    #: time of the sample nearest to the failure, before or after it; None: the driver reported it at the failure
    device_free_sampled_at_ns: Optional[int]
    capacity_bytes: Optional[int]  #: of the device
    outside_pytorch_bytes: Optional[int]  #: in use on the device, but not reserved; known with a capacity
    other_processes_bytes: Optional[int]  #: the part of it that other processes use
    cache: Optional[Cache]  #: None: segments are not known
    refused_by: str  #: "unknown", "device", "limit"
    limit: Optional[MemoryLimit]  #: of what the process may reserve, where that refused
    missing_bytes: Optional[int]  #: that the driver, or at most the limit, was short of
    causes: tuple[Cause, ...]  #: the main one first, what is not certain last
    leak_analysis: LeakAnalysis
    fixes: tuple[Fix, ...]  #: certain ones first
    top_allocations: tuple[TopAllocation, ...]  #: most bytes first
    other_stack_count: int
    other_stacks_bytes: int
    call_sites: tuple[CallSite, ...]  #: the same by call site
    other_call_site_count: int
    other_call_sites_bytes: int
    unrecorded_bytes: int  #: allocated, in no recorded block
    batch_bytes: Optional[int]  #: allocated for activations, inputs and temporaries, which grow with the batch
    advice: Optional[tuple[FailureAdvice, ...]]  #: most bytes first


@dataclass(frozen=True)
class DevicePeaks:
    """Peaks of a device."""

    device: str
    peak_allocated_bytes: int
    peak_allocated_at_ns: Optional[int]
    peak_reserved_bytes: Optional[int]
    peak_reserved_at_ns: Optional[int]


@dataclass(frozen=True, repr=False)
class Explanation(Result, OfRecording):
    """Out-of-memory errors: cause, top allocations, possible fixes."""

    capacity_bytes: Optional[int]  #: --capacity
    out_of_memory_count: int
    failures: tuple[Failure, ...]  #: latest first, equal ones as one
    other_failure_count: int
    killed: tuple[KilledProcess, ...]
    devices: tuple[DevicePeaks, ...]
