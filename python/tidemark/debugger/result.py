"""Results whose keys are attributes too: ``change["memory_change_mb"]`` and ``change.memory_change_mb``."""

from __future__ import annotations

from typing import Any


class Result(dict[str, Any]):
    """A dict, for JSON and for programs that index; its keys can be read as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there are {', '.join(map(repr, self))}") from None


def difference(after: float | None, before: float | None) -> float | None:
    """The increase; None if either value is unknown."""
    return None if after is None or before is None else after - before
