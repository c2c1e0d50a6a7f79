"""The vote by which all ranks of a job take the same decision about a step."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidemark import _ranks

# Actions by how strong they are: the strongest one of any rank is taken by all.
RUN, SPLIT_IN_DOUBT, SPLIT, SKIP, STOP = range(5)
# A vote is one number whose maximum is the decision: action, parts, rank.
_BITS = 20
_MASK = (1 << _BITS) - 1
MAX_PARTS = _MASK

_GUARD = _ranks.Caller(
    "StepGuard",
    "step",
    "each rank has to call parts() for each batch",
    "one of them called parts() or prepare() more often than another",
)


class Vote(NamedTuple):
    """What one rank wants, or what all have agreed on."""

    action: int
    parts: int
    #: This rank; in an agreement the rank that decided.
    rank: int
    #: Into how many parts the batch can be split; in an agreement the fewest of any rank.
    samples: int
    #: Which step of the guard it is, from 0.
    step: int
    #: In an agreement: the highest rank that could not predict; ``None`` if all could.
    failed_rank: int | None


class PendingVote:
    """An agreement under way."""

    def __init__(self, pending: _ranks.Pending, step: int) -> None:
        self._pending = pending
        self._step = step

    def result(self) -> Vote:
        """Waits for all ranks. Raises TidemarkError if one does not answer in time, or is at another step."""
        strongest, fewest, failed = self._pending.result()
        return Vote(
            strongest >> 2 * _BITS,
            strongest >> _BITS & _MASK,
            strongest & _MASK,
            -fewest,
            self._step,
            failed - 1 if failed else None,
        )


class Agreement:
    """All-reduces of five integers in a process group, each of which one vote of every rank takes part in."""

    def __init__(self, group: Any, device: Any, timeout: float) -> None:
        self._ranks = _ranks.ranks_of(group, device, timeout, 3, _GUARD)
        self.rank = self._ranks.rank
        self.world_size = self._ranks.world_size
        if self.world_size > MAX_PARTS:
            raise ValueError(f"StepGuard: at most {MAX_PARTS} ranks")

    def start(self, vote: Vote) -> PendingVote:
        """Begin. One at a time: ``result()`` has to be called before the next one."""
        strongest = vote.action << 2 * _BITS | vote.parts << _BITS | vote.rank
        failed = 0 if vote.failed_rank is None else vote.failed_rank + 1
        return PendingVote(self._ranks.start((strongest, -vote.samples, failed), vote.step), vote.step)
