"""A guard of training steps: batches that would run out of memory are split, skipped or refused by all ranks together."""

from __future__ import annotations

from tidemark.step_guard.guard import Part as Part
from tidemark.step_guard.guard import StepDecision as StepDecision
from tidemark.step_guard.guard import StepGuard as StepGuard
from tidemark.step_guard.guard import StepStopped as StepStopped
from tidemark.step_guard.law import MemoryLaw as MemoryLaw
from tidemark.step_guard.law import Prediction as Prediction
from tidemark.step_guard.longest_batch import LongestBatch as LongestBatch
from tidemark.step_guard.memory import DeviceMemory as DeviceMemory
from tidemark.step_guard.shapes import BatchShape as BatchShape
from tidemark.step_guard.trial_step import Preflight as Preflight
from tidemark.step_guard.trial_step import TriedBatch as TriedBatch

__all__ = [
    "BatchShape",
    "DeviceMemory",
    "LongestBatch",
    "MemoryLaw",
    "Part",
    "Prediction",
    "Preflight",
    "StepDecision",
    "StepGuard",
    "StepStopped",
    "TriedBatch",
]
