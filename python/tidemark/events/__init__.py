"""The event profiler: what memory was in use when the program said so."""

from tidemark.events.profiler import GPUMemoryProfiler

__all__ = ["GPUMemoryProfiler"]
