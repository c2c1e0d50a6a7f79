"""Answers a monitor's request to a recorded program for its new storages since the first request, and their holders.

`tidemark leak --enable-tracking` creates a file objects.PID.question in the recorder's folder, which only the user can access:
it contains "first" or "again". The program answers with objects.PID.answer, while its main thread waits between two bytecodes:
the recording library contains these modules, and runs answer() on a thread of its own (src/collect/process/script). The program
does not need the package.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from ._scene import explain_storages, live_storages
from ._types import Holders

_MOST_SAMPLES = 64  # storages with holders in the answer
_MOST_CHAINS = 3
_MOST_STORAGES = 1_000_000
_MOST_TEXT = 500
_MOST_SECONDS = 10.0  # after which no more chains are searched; storages are counted in any case

_first: dict[int, tuple[int, int, str]] | None = None


def answer(question: str) -> None:
    """Answers the request in this file, and removes it. No error reaches the program."""
    asked = Path(question)
    try:
        first = asked.read_text(encoding="utf-8").strip() == "first"
        asked.unlink()
    except OSError:
        return  # another thread is answering
    begun = time.perf_counter()
    try:
        said: dict[str, Any] = _look(first)
    except Exception as error:
        said = {"problem": f"{type(error).__name__}: {error}"[:_MOST_TEXT]}
    said["seconds"] = time.perf_counter() - begun
    with contextlib.suppress(OSError):
        part = asked.with_suffix(".part")
        part.touch(mode=0o600)
        part.write_text(json.dumps(said), encoding="utf-8")
        part.replace(asked.with_suffix(".answer"))


def _look(first: bool) -> dict[str, Any]:
    global _first
    torch = sys.modules.get("torch")
    if torch is None:
        return {"problem": "PyTorch is not imported"}
    begun = time.perf_counter()
    live = live_storages(torch)
    if len(live) > _MOST_STORAGES:
        return {"problem": f"there are more than {_MOST_STORAGES} tensors"}
    if first or _first is None:
        _first = live
        return {"first": True}
    new = sorted((key for key in live if live[key] != _first.get(key)), key=lambda key: -live[key][1])
    samples = new[:: max(1, len(new) // _MOST_SAMPLES)][:_MOST_SAMPLES]
    left = _MOST_SECONDS - (time.perf_counter() - begun)
    found, complete, notes = explain_storages(torch, samples, _MOST_CHAINS, left)
    return {
        "stopped_after_seconds": None if complete else _MOST_SECONDS,
        "new_storages": len(new),
        "new_bytes": sum(live[key][1] for key in new),
        "notes": [template.format(**values)[:_MOST_TEXT] for template, values in notes],
        "storages": [
            {
                "address": each.address,
                "bytes": each.bytes,
                "device": each.device,
                "kind": each.owners[0].kind if each.owners else None,
                "type": each.owners[0].what.partition(" ")[0][:_MOST_TEXT] if each.owners else None,
                **_chains(each),
            }
            for each in found
        ],
    }


def _chains(found: Holders) -> dict[str, Any]:
    """The chains that lead to a root; or, with a flag, the others, which contain only the owner's type."""
    paths = [chain.path[:_MOST_TEXT] for chain in found.chains if chain.kind != "native" or chain.steps]
    return {"chains": paths[:_MOST_CHAINS], "native": bool(found.chains) and not paths}
