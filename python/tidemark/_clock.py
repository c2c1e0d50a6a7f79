"""Times of which differences are made."""

from __future__ import annotations

import time

_BEGAN = time.time() - time.monotonic()


def steady_time() -> float:
    """Seconds since 1970, as the clock was when the program began: setting the clock meanwhile changes nothing."""
    return _BEGAN + time.monotonic()
