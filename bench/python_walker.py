"""Cost of a walk of the Python stack, and of the hook in the deallocator of code objects, inside a real interpreter.

Usage: pythonX.Y bench/python_walker.py BUILD/.../libtidemark_python_probe.so [DEPTH ...]
"""

import ctypes
import marshal
import statistics
import sys
import time

library = ctypes.PyDLL(sys.argv[1])
library.probe_time_walk.argtypes = [ctypes.c_uint64, ctypes.c_size_t]
library.probe_time_walk.restype = ctypes.c_double
SUPPORTED = 1


def nested_code():
    """Source with 200 functions, so that unmarshalling it makes and drops many code objects."""
    source = "".join("def f%d(a, b):\n    return a + b * %d\n" % (index, index) for index in range(200))
    return marshal.dumps(compile(source, "bulk.py", "exec"))


def time_bulk(data, rounds=60):
    """Nanoseconds to make and drop one code object."""
    begin = time.perf_counter()
    for _ in range(rounds):
        marshal.loads(data)
    return (time.perf_counter() - begin) * 1e9 / (rounds * 201)


def chain_of_functions(count):
    """The first of `count` functions that call each other, each with its own code object as in real programs. The last one
    measures.
    """
    scope = {"f%d" % (count - 1): lambda: library.probe_time_walk(200000, 128)}
    exec("".join("def f%d():\n    return f%d()\n" % (level, level + 1) for level in range(count - 1)), scope)
    return scope["f0"]


def main():
    depths = [int(text) for text in sys.argv[2:]] or [6, 20, 38]
    data = nested_code()
    time_bulk(data)
    before = min(time_bulk(data) for _ in range(15))
    if library.probe_detect() != SUPPORTED:
        sys.exit("this interpreter is not supported: " + sys.version)
    after = min(time_bulk(data) for _ in range(15))
    print("python", sys.version.split()[0])
    for depth in depths:
        first = chain_of_functions(depth - 2)  # below them are this function and the module
        figures = []
        for _ in range(9):
            figures.append(first())
        print("walk of %2d frames: %6.1f ns (median of %d; least %.1f)"
              % (depth, statistics.median(figures), len(figures), min(figures)))
    print("code object made and dropped: %.0f ns before, %.0f ns with deaths watched (least of 15)" % (before, after))


main()
