"""The older module ``memoryCheck``: the event profiler."""

from tidemark.events import GPUMemoryProfiler

__all__ = ["GPUMemoryProfiler"]
