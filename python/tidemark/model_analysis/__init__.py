"""What a model's parameters, buffers and gradients take and whether their values are sound."""

from __future__ import annotations

from tidemark.model_analysis.analysis import OVERSIZED_MB as OVERSIZED_MB
from tidemark.model_analysis.analysis import analyze_model as analyze_model
from tidemark.model_analysis.issues import Issue as Issue
from tidemark.model_analysis.result import ModelAnalysis as ModelAnalysis
