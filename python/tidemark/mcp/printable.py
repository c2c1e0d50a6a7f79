"""Text of others, such as names in recordings, made visible: nothing in it moves a cursor, hides or reorders letters."""

from __future__ import annotations

import re

# Variation selectors count as printable; a row of them after a letter is not seen, and can carry a text.
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def printable(text: str) -> str:
    """With control characters, invisible ones and such that reorder text written as Python writes them: ``\\x1b``."""
    if text.isprintable() and not _SELECTORS.search(text):
        return text
    return "".join(
        character
        if character.isprintable() and not _SELECTORS.match(character)
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
