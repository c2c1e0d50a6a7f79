"""Python runs this file when it starts a program of a test, which then imports PyTorch in four fifths of the time.

While PyTorch is imported, the garbage collector scans the imported modules' objects repeatedly: here it
runs less often. And PyTorch looks up the place of each operation that it registers, with the lines around it, for which
Python goes through all modules: here it gets only the place.
"""

import gc
import inspect

gc.set_threshold(100_000)
_with_lines = inspect.getframeinfo


def _without_lines(frame, context=0):
    return _with_lines(frame, context)


inspect.getframeinfo = _without_lines
