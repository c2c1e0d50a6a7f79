"""What this package raises where something is not as it has to be."""

from __future__ import annotations


class TidemarkError(RuntimeError):
    """Tidemark cannot do what was asked for; the message names the file and says what to do.

    Exceptions of the program's own code pass through Tidemark's contexts as they are.
    """
