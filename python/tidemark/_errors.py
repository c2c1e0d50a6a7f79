"""Exceptions of this package."""

from __future__ import annotations


class TidemarkError(RuntimeError):
    """Tidemark cannot do what was requested; the message names the file and the remedy.

    Exceptions of the program's own code pass through Tidemark's contexts unchanged.
    """
