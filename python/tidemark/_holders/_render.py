"""Holders as text and as HTML, in English or Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tidemark._holders._types import HolderChain, Holders, LargestHolders, StorageOwner
from tidemark._language import say
from tidemark._sizes import bytes_text

NOTHING = "No live Python object has this storage: it was freed, or native code alone holds it"
HEADING = "{bytes} on {device} at 0x{address:x}, owned by {count}"
KINDS = {
    "parameter": "parameter",
    "tensor": "tensor",
    "view": "view",
    "gradient": "gradient",
    "saved tensor": "saved tensor",
    "numpy array": "numpy array",
    "storage": "storage",
}
CYCLE = "reference cycle, freed by the garbage collector only"
NATIVE = "held by native code, or a temporary of a running function"
LARGEST = "{count} of {all} live storages, {bytes} of {total}"


def heading(found: Holders) -> str:
    if found.bytes is None or found.address is None:
        return say(NOTHING, found.lang)
    size = bytes_text(found.bytes)
    return say(HEADING, found.lang, bytes=size, device=found.device, address=found.address, count=len(found.owners))


def owner_text(owner: StorageOwner, lang: str | None) -> str:
    return f"{say(KINDS[owner.kind], lang)}: {owner.what}"


def chain_text(chain: HolderChain, lang: str | None) -> str:
    if chain.kind == "cycle":
        return f"{chain.path}  ({say(CYCLE, lang)}: {chain.cycle})"
    if chain.kind == "native":
        return f"{chain.path}  ({say(NATIVE, lang)})"
    return chain.path


def text(found: Holders) -> str:
    """Owners with their chains, indented, one per line."""
    lines = [heading(found)]
    for owner in found.owners:
        lines.append(f"  {owner_text(owner, found.lang)}")
        lines += [f"    {chain_text(chain, found.lang)}" for chain in owner.chains]
    lines += [f"  ({note})" for note in found.notes]
    return "\n".join(lines)


def largest_text(found: LargestHolders) -> str:
    shown = sum(each.bytes or 0 for each in found.largest)
    first = say(
        LARGEST,
        found.lang,
        count=len(found),
        all=found.storages,
        bytes=bytes_text(shown),
        total=bytes_text(found.bytes),
    )
    return "\n".join([first, *(text(each) for each in found.largest), *(f"({note})" for note in found.notes)])


def html(found: Sequence[Holders]) -> str:
    """A table with a row for each chain; texts of the program are escaped."""
    rows = []
    for each in found:
        rows.append(f'<tr><th colspan="2" style="text-align:left">{escape(heading(each))}</th></tr>')
        for owner in each.owners:
            chains = "<br>".join(f"<code>{escape(chain_text(chain, each.lang))}</code>" for chain in owner.chains)
            rows.append(
                f'<tr><td style="text-align:left">{escape(owner_text(owner, each.lang))}</td>'
                f'<td style="text-align:left">{chains}</td></tr>'
            )
        rows += [f'<tr><td colspan="2" style="text-align:left">{escape(note)}</td></tr>' for note in each.notes]
    return f"<table>{''.join(rows)}</table>"
