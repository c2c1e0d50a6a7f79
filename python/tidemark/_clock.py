"""Times for computing differences."""

from __future__ import annotations

import time

_BEGAN = time.time() - time.monotonic()


def steady_time() -> float:
    """Seconds since 1970, by the clock at the program's start: setting the clock meanwhile changes nothing."""
    return _BEGAN + time.monotonic()
