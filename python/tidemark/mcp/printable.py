"""Untrusted text, such as names in recordings, made visible: it cannot move a cursor, hide or reorder letters."""

from __future__ import annotations

import re

# Variation selectors count as printable; a sequence of them after a letter is invisible, and can carry a text.
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def printable(text: str) -> str:
    """The text with control characters, invisible and reordering characters escaped as in Python: ``\\x1b``."""
    if text.isprintable() and not _SELECTORS.search(text):
        return text
    return "".join(
        character
        if character.isprintable() and not _SELECTORS.match(character)
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
