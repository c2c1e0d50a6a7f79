"""The event profiler: memory in use at events named by the program."""

from tidemark.events.profiler import GPUMemoryProfiler

__all__ = ["GPUMemoryProfiler"]
