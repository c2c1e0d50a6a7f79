"""What ``tidemark restart`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import Stack


@dataclass(frozen=True)
class RestartRank:
    """A recorded process of the job, and how it ended."""

    file: str
    rank: Optional[int]
    pid: Optional[int]
    hostname: Optional[str]
    #: "no_failure", "out_of_memory", "killed", "survived": survived: it continued with further steps after a failed request
    end: str
    device: Optional[str]  #: of the last failed request; None: the host, or none failed
    requested_bytes: Optional[int]
    killed_pid: Optional[int]  #: itself, or a process that it started
    failed_at_ns: Optional[int]  #: of the last failed request, or when it was found killed
    failed_wall_ns: Optional[int]  #: Unix time


@dataclass(frozen=True)
class RestartEvidence:
    """The failed request of the first rank, and the steps before it."""

    message: str  #: what failed and why, a sentence
    cause: Optional[str]  #: "leak", "other_process", "limit", "fragmentation", "demand": as in ``explain``; None: not known
    requested_bytes: int
    missing_bytes: Optional[int]
    step: Optional[int]  #: from 1; 0: before the first; None: not known
    step_is_exact: bool  #: otherwise it may be off by one
    from_start: bool  #: otherwise the recording is the last part of a longer one
    complete_step_count: int
    need_bytes: int  #: allocated in recorded blocks, and the request
    highest_step_peak_bytes: Optional[int]  #: of the earlier, complete steps, in recorded blocks
    leaked_bytes: Optional[int]
    leak_bytes_per_step: Optional[float]


@dataclass(frozen=True)
class RestartChange:
    """A change for the next attempt."""

    kind: str  #: "allocator_settings", "batch", "planned", "limit", "program": the smallest change first
    detail: Optional[str]  #: its kind in ``explain``: of a fix or of advice
    text: str  #: what to change
    bytes: int  #: that it saves or makes usable; of a planned change what a device needs with it
    enough: Optional[bool]  #: None: unknown, because later requests of the step are
    until_step: Optional[int]  #: of a leak that goes on: about when memory runs out then
    confidence: str  #: "exact", "estimated", "unknown": of its bytes and of ``enough``
    verified_by: Optional[str]  #: the allocator that replayed it, "PyTorch 2.11.0", or "plan"
    allocator_settings: Optional[str]  #: for PYTORCH_ALLOC_CONF
    batch_divisor: Optional[int]  #: the batch is divided by it
    stack: Optional[Stack]  #: of advice


@dataclass(frozen=True)
class ChangedArgument:
    """An argument of the next attempt's command."""

    name: str  #: "batch", "accumulation" or "checkpointing"
    option: str
    was: Optional[str]  #: None: the command did not have it
    value: Optional[str]  #: None: a flag


@dataclass(frozen=True)
class NextAttempt:
    """What a launcher can start next; tidemark starts nothing."""

    change: int  #: index into ``changes``
    changed_arguments: tuple[ChangedArgument, ...]
    environment: dict[str, str]  #: variables to set
    command: tuple[str, ...]  #: the changed command


@dataclass(frozen=True, repr=False)
class RestartVerdict(Result):
    """Whether a job that ran out of memory will do so again, and what to change."""

    will_recur: str  #: "unknown", "no", "yes"
    #: from 1, if the program starts from the beginning; with ``unknown`` only if the same data come in the same order
    at_step: Optional[int]
    earliest_step: Optional[int]
    latest_step: Optional[int]
    confidence: str  #: "exact", "estimated", "unknown": exact: each run does the same; estimated: likely
    #: "no_failure", "survived", "leak", "growing_steps", "setup", "first_steps", "other_phase", "larger_step", "fragmentation",
    #: "memory_of_others", "host_memory", "not_recorded"
    reason: str
    message: str  #: the verdict in sentences
    first: Optional[RestartRank]  #: the process that ran out of memory first
    evidence: Optional[RestartEvidence]  #: None: no request failed, or the recording could not be examined
    changes: tuple[RestartChange, ...]  #: enough ones first, then the smallest change first
    next_attempt: Optional[NextAttempt]  #: with ``--apply``; None: no change could be applied
    not_applied: Optional[str]  #: why there is no next attempt
    world_size: Optional[int]
    missing_ranks: tuple[int, ...]  #: without a recording, at most 64
    missing_rank_count: int
    older_recording_count: int  #: of the folder, of earlier attempts: not used
    ranks: tuple[RestartRank, ...]  #: by rank
