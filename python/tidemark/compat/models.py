"""``analyze_model`` for programs of the older tools: including invalid values of parameters."""

from __future__ import annotations

from typing import Any

from tidemark import model_analysis


def analyze_model(model: Any, name: str | None = None, lang: str | None = None, **options: Any) -> model_analysis.ModelAnalysis:
    """``tidemark.analyze_model`` with ``values=True``: tensors with NaN or infinite values are logged as ERROR, too."""
    return model_analysis.analyze_model(model, name, lang, **{"values": True, **options})
