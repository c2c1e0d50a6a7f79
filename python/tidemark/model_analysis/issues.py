"""The warnings of an analysis."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tidemark._language import say
from tidemark._logging import package_logger

#: Lines of one kind in the log; the others are counted in one more.
_MOST_LOGGED = 10


@dataclass(frozen=True)
class Issue:
    """A problem, or an unusual property, of one tensor, module or layer."""

    level: str  #: ``"warning"`` or ``"error"``
    kind: str  #: ``"oversized_parameter"``, ``"nan"``, ``"vanishing_gradient"``, …
    name: str  #: dotted name of the tensor, module or layer
    message: str  #: a sentence with the name, in the requested language
    memory_mb: float | None = None


def log_issues(issues: Sequence[Issue], lang: str | None) -> None:
    """Logs to ``tidemark``, errors as ERROR and the rest as WARNING; of each kind the first ten, and the number of others."""
    logger = package_logger()
    kinds: dict[str, list[Issue]] = {}
    for issue in issues:
        kinds.setdefault(issue.kind, []).append(issue)
    for kind, alike in kinds.items():
        level = logging.ERROR if any(issue.level == "error" for issue in alike) else logging.WARNING
        for issue in alike[:_MOST_LOGGED]:
            logger.log(logging.ERROR if issue.level == "error" else logging.WARNING, "%s", issue.message)
        if len(alike) > _MOST_LOGGED:
            more = say("{count} more of this kind ({kind})", lang, count=len(alike) - _MOST_LOGGED, kind=kind)
            logger.log(level, "%s", more)
