"""Trials of a batch size whose results all ranks of a job share: what does not fit one of them fits none."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tidemark import _ranks
from tidemark._errors import TidemarkError

_SEARCH = _ranks.Caller(
    "auto_batch_size",
    "batch size",
    "each rank has to call auto_batch_size() with the same arguments, and the trial function must not communicate with other "
    "ranks (a rank that ran out of memory does not answer them)",
    "all ranks have to call auto_batch_size() with the same arguments, and as often",
)
# Below each value that a rank has.
_NONE = -(1 << 62)
# How long a rank that fails waits for the others to hear of it.
_FAREWELL_SECONDS = 10.0


class Trial(NamedTuple):
    """Result of a trial: of one rank, or of all."""

    fits: bool
    #: Whether the step left no more memory than before; on all ranks.
    warmed_up: bool
    #: Bytes of the peak; of all ranks: the limit, less the least memory that a rank has left. ``None`` if one is not known.
    peak: int | None
    #: Bytes available for the peak; of all ranks: the least. ``None`` on the CPU.
    limit: int | None
    #: Whether the trial communicated with other ranks.
    communicates: bool = False
    #: The highest rank on which it did not fit; ``None`` if it fits.
    rank: int | None = None


class AgreedTrials:
    """All ranks of a process group, which try the same sizes in the same order; a program without other ranks agrees alone.

    The result of all is that of one rank whose memory is the least, and which has the least memory left at each size.
    """

    def __init__(self, group: Any, device: int | None, timeout: float) -> None:
        # The rank that fails + 1, and five values.
        self._ranks = _ranks.Alone() if group is False else _ranks.ranks_of(group, device, timeout, 6, _SEARCH)
        self.rank = self._ranks.rank
        self.world_size = self._ranks.world_size

    def begin(self, arguments: object) -> None:
        """Compare the arguments of all ranks.

        The first collective, for which NCCL makes a communicator: it takes its memory before the first trial.
        """
        digest = zlib.crc32(repr(arguments).encode())
        highest, lowest, *_ = self._exchange(0, (digest, -digest, 0, 0, 0))
        if highest != -lowest:
            raise TidemarkError("auto_batch_size: all ranks have to call it with the same arguments")

    def agree(self, size: int, own: Trial) -> Trial:
        """The result for all ranks. Raises TidemarkError on all of them if the trial of one communicates."""
        if self.world_size == 1:
            return own._replace(rank=None if own.fits else self.rank)
        beyond = _NONE if own.peak is None or own.limit is None else own.peak - own.limit
        failed = 0 if own.fits else self.rank + 1
        limit = _NONE if own.limit is None else -own.limit
        mine = (failed, int(not own.warmed_up), beyond, limit, int(own.communicates))
        failed, is_first, beyond, limit, communicates = self._exchange(size, mine)
        if communicates:
            raise TidemarkError(
                "auto_batch_size: the trial function communicates with other ranks, which would wait for one that runs out of "
                "memory. Under DDP let it run `model.module`, without its wrapper. A model that cannot run without the other "
                "ranks (FSDP, tensor and pipeline parallelism) can be planned: `tidemark plan`"
            )
        least = None if limit == _NONE else -limit
        peak = None if failed or is_first or least is None or beyond == _NONE else least + beyond
        return Trial(not failed, not is_first, peak, least, rank=failed - 1 if failed else None)

    def fail(self, size: int) -> None:
        """Let the other ranks know that this one raises an error. Returns soon also if they do not listen."""
        with suppress(TidemarkError):
            self._ranks.start((self.rank + 1, *[_NONE] * 5), size).result(_FAREWELL_SECONDS)

    def _exchange(self, number: int, values: Sequence[int]) -> Sequence[int]:
        failed, *agreed = self._ranks.start((0, *values), number).result()
        if failed:
            raise TidemarkError(f"auto_batch_size: rank {failed - 1} failed: its output has the error")
        return agreed
