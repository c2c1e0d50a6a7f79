"""The marks of integrations, in order: ``marks(monkeypatch)`` returns the list that it fills."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from tidemark import _recorder


def marks(monkeypatch: Any) -> list[str]:
    told: list[str] = []

    @contextmanager
    def span(name: str) -> Any:
        told.append(f"{name} {{")
        yield
        told.append(f"}} {name}")

    monkeypatch.setattr(_recorder, "mark", told.append)
    monkeypatch.setattr(_recorder, "step", lambda: span("step"))
    monkeypatch.setattr(_recorder, "range", span)
    return told
