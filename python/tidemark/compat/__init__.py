"""The older tools' names on Tidemark's engine: programs change only the line that imports them.

``from tidemark.compat import GPUMemoryProfiler, memory_snapshot, …``, or the older modules by name:
``tidemark.compat.memoryCheck``, ``quickMemoryDebug``, ``trainWithMemoryDebug`` and ``memoryDebugger``. Each name is loaded at
its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

#: Name -> the module that defines it.
_EXPORTS: dict[str, str] = {
    "DistributedMemoryMonitor": "tidemark.job_monitor",
    "FragmentationAnalyzer": "tidemark.monitors",
    "GPUMemoryProfiler": "tidemark.events",
    "MemoryDebugger": "tidemark.debugger.memory_debugger",
    "MemoryLeakDetector": "tidemark.monitors",
    "MemoryManager": "tidemark.memory_manager",
    "MemoryProfiler": "tidemark.monitors",
    "OOMDetector": "tidemark.monitors",
    "OptimizedDataLoader": "tidemark.loading",
    "PerformanceMonitor": "tidemark.performance",
    "PrefetchLoader": "tidemark.loading",
    "TrainingMemoryProfiler": "tidemark.debugger.training_profiler",
    "analyze_model": "tidemark.compat.models",
    "check_memory_status": "tidemark.debugger.snapshots",
    "cleanup_memory": "tidemark.debugger.snapshots",
    "compare_snapshots": "tidemark.debugger.snapshots",
    "create_memory_debugger": "tidemark.debugger.memory_debugger",
    "debug_lora_training": "tidemark.debugger.training_profiler",
    "debug_memory_with_different_configs": "tidemark.debugger.training_profiler",
    "generate_report": "tidemark.debugger.snapshots",
    "memory_profiled_training": "tidemark.debugger.training_profiler",
    "memory_snapshot": "tidemark.debugger.snapshots",
    "monitor_function": "tidemark.debugger.snapshots",
}

if TYPE_CHECKING:
    from tidemark.compat.models import analyze_model as analyze_model
    from tidemark.debugger.memory_debugger import MemoryDebugger as MemoryDebugger
    from tidemark.debugger.memory_debugger import create_memory_debugger as create_memory_debugger
    from tidemark.debugger.snapshots import check_memory_status as check_memory_status
    from tidemark.debugger.snapshots import cleanup_memory as cleanup_memory
    from tidemark.debugger.snapshots import compare_snapshots as compare_snapshots
    from tidemark.debugger.snapshots import generate_report as generate_report
    from tidemark.debugger.snapshots import memory_snapshot as memory_snapshot
    from tidemark.debugger.snapshots import monitor_function as monitor_function
    from tidemark.debugger.training_profiler import TrainingMemoryProfiler as TrainingMemoryProfiler
    from tidemark.debugger.training_profiler import debug_lora_training as debug_lora_training
    from tidemark.debugger.training_profiler import debug_memory_with_different_configs as debug_memory_with_different_configs
    from tidemark.debugger.training_profiler import memory_profiled_training as memory_profiled_training
    from tidemark.events import GPUMemoryProfiler as GPUMemoryProfiler
    from tidemark.job_monitor import DistributedMemoryMonitor as DistributedMemoryMonitor
    from tidemark.loading import OptimizedDataLoader as OptimizedDataLoader
    from tidemark.loading import PrefetchLoader as PrefetchLoader
    from tidemark.memory_manager import MemoryManager as MemoryManager
    from tidemark.monitors import FragmentationAnalyzer as FragmentationAnalyzer
    from tidemark.monitors import MemoryLeakDetector as MemoryLeakDetector
    from tidemark.monitors import MemoryProfiler as MemoryProfiler
    from tidemark.monitors import OOMDetector as OOMDetector
    from tidemark.performance import PerformanceMonitor as PerformanceMonitor

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'tidemark.compat' has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        from tidemark._native import explained

        raise explained(error) from error.__cause__


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
