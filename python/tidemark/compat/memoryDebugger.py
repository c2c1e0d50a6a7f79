"""The older module ``memoryDebugger``: checkpoints, real-time monitoring and reports."""

from tidemark.debugger.memory_debugger import MemoryDebugger as MemoryDebugger
from tidemark.debugger.memory_debugger import create_memory_debugger as create_memory_debugger
