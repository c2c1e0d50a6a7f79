"""For programs short of memory: batch sizes that fit, steps that are repeated in parts, checkpoints, policies."""

from __future__ import annotations

from tidemark.memory_manager.batch_size import BatchProbe as BatchProbe
from tidemark.memory_manager.batch_size import BatchSize as BatchSize
from tidemark.memory_manager.batch_size import auto_batch_size as auto_batch_size
from tidemark.memory_manager.manager import MemoryManager as MemoryManager
from tidemark.memory_manager.manager import Optimization as Optimization
from tidemark.memory_manager.planned_sizes import PlannedSize as PlannedSize
from tidemark.memory_manager.policies import act_on_forecast as act_on_forecast
from tidemark.memory_manager.policies import checkpoint_and_exit as checkpoint_and_exit
from tidemark.memory_manager.retry import MicroBatches as MicroBatches
from tidemark.memory_manager.retry import retry_on_oom as retry_on_oom

__all__ = [
    "BatchProbe",
    "BatchSize",
    "MemoryManager",
    "MicroBatches",
    "Optimization",
    "PlannedSize",
    "act_on_forecast",
    "auto_batch_size",
    "checkpoint_and_exit",
    "retry_on_oom",
]
