"""Memory of a model's parameters, buffers and gradients, and checks of their values."""

from __future__ import annotations

from tidemark.model_analysis.analysis import OVERSIZED_MB as OVERSIZED_MB
from tidemark.model_analysis.analysis import analyze_model as analyze_model
from tidemark.model_analysis.issues import Issue as Issue
from tidemark.model_analysis.result import ModelAnalysis as ModelAnalysis
