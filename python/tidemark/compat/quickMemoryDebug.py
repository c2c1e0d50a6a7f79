"""The older module ``quickMemoryDebug``: snapshots, a model's memory, checks and reports in one call each."""

from tidemark.compat import __getattr__ as __getattr__  # analyze_model, at its first use
from tidemark.debugger.snapshots import check_memory_status as check_memory_status
from tidemark.debugger.snapshots import cleanup_memory as cleanup_memory
from tidemark.debugger.snapshots import compare_snapshots as compare_snapshots
from tidemark.debugger.snapshots import generate_report as generate_report
from tidemark.debugger.snapshots import memory_snapshot as memory_snapshot
from tidemark.debugger.snapshots import monitor_function as monitor_function
