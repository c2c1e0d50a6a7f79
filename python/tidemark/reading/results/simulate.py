"""What ``tidemark simulate`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional

from tidemark.reading.rendering import Result
from tidemark.reading.results.common import OfRecording


@dataclass(frozen=True)
class AllocatorState:
    """The allocator at one time."""

    allocated_bytes: Optional[int]
    reserved_bytes: Optional[int]
    largest_free_bytes: Optional[int]  #: block in a segment
    free_block_count: Optional[int]


@dataclass(frozen=True)
class AllocatorOutcome:
    """What the allocator did."""

    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_active_bytes: Optional[int]
    peak_inactive_split_bytes: Optional[int]
    retry_count: Optional[int]  #: the cache was emptied for lack of memory
    segment_count: Optional[int]  #: reserved from the driver in all; those that grow do not count
    end_segment_count: Optional[int]
    at_recorded_peak: AllocatorState  #: at the recorded peak of allocated memory
    at_end: AllocatorState


@dataclass(frozen=True)
class SimulatedDevice:
    """A device as it was recorded."""

    device: str
    limit_bytes: Optional[int]  #: that the process can reserve; None: without a limit
    recorded: AllocatorOutcome


@dataclass(frozen=True)
class DeviceOutcome(AllocatorOutcome):
    """What the allocator did on one device."""

    device: str


@dataclass(frozen=True)
class SimulatedRun:
    """The recording replayed under some settings of the allocator."""

    settings: str  #: as in PYTORCH_CUDA_ALLOC_CONF; "": the defaults
    peak_reserved_bytes: int  #: of all devices
    saved_bytes: Optional[int]  #: negative: it takes more; None where memory ran out before the end
    retry_count: int
    out_of_memory_at_ns: Optional[int]  #: where it did not in the recording: the replay ends there
    passed_failure_count: int  #: requests that failed when recorded, and did not here
    devices: tuple[DeviceOutcome, ...]


@dataclass(frozen=True, repr=False)
class Simulation(Result, OfRecording):
    """What other settings of the allocator would have done."""

    replayed_by: str  #: "pytorch", "model"
    torch_version: Optional[str]  #: whose allocator replayed
    settings_known: bool  #: the recorded ones; otherwise taken to be the defaults
    sizes_known: bool  #: the requested ones; otherwise those of the blocks
    start_block_count: int  #: blocks that were there before the first event
    failed_request_count: int
    limit_by_fraction: bool  #: as torch.cuda.set_per_process_memory_fraction() sets it
    devices: tuple[SimulatedDevice, ...]
    reserved_error_bytes: int  #: recorded peak reserved less the replayed one: 0 where the replay is exact
    as_recorded: SimulatedRun  #: under the recorded settings
    runs: tuple[SimulatedRun, ...]  #: best first
    notes: tuple[str, ...]
