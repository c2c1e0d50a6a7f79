#!/usr/bin/env python3
"""Checks the #include lines of src/ against the table below: which stage may see which headers.

The CMake targets stop symbols of stages that are not linked, but every header of src/ can be found from everywhere. A new
stage gets one line in the table. Includes that the compiler does not see (tests, bench) are not checked.

    scripts/check_includes.py [ROOT]       prints FILE:LINE: what is wrong; exits with 1 where something is
"""

import re
import sys
from pathlib import Path

# stage -> what it may include apart from itself. A stage is a folder of src/, or of src/collect. A longer name is a single
# header. docs/architecture.md draws the same.
TABLE = {
    "base": [],
    "allocator": ["base"],
    "trace": ["base"],
    "collect/ring": [],
    # Runs inside the recorded program: nothing but libc, and headers of ours that need no runtime.
    "collect/process": ["collect/ring", "base/control_functions.h", "base/inductor_file.h", "base/uint128.h", "trace/quality_id.h", "tidemark"],
    "collect/machine": ["base", "trace/sample.h"],
    "collect/recorder": ["base", "trace", "collect/ring", "collect/machine"],
    "store": ["base", "allocator", "trace"],
    "import": ["base", "allocator", "trace", "store"],
    "model": ["base"],
    "analyze": ["base", "allocator", "trace", "store"],
    "follow": ["base", "trace", "store", "analyze", "collect/recorder"],
    "monitor": ["base", "trace", "store", "analyze", "follow", "collect/ring", "collect/machine", "collect/recorder"],
    "inprocess": ["base", "store", "analyze", "monitor", "launch", "collect/machine"],
    "loading": ["base", "inprocess"],
    "batching": ["base", "inprocess"],
    "http": ["base"],
    "query/words": ["base", "allocator", "trace", "store", "analyze"],
    "query/describe": ["base"],
    "query/results": ["base", "allocator", "trace", "store", "analyze", "query/words", "query/describe"],
    "report": ["query/words", "query/describe", "query/results", "base", "allocator", "trace", "store", "analyze", "follow", "monitor", "inprocess", "publish/history/history.h", "model", "doctor", "launch",
               "collect/machine", "collect/recorder/live/live_message.h"],
    "tui": ["query/words", "base", "trace", "store", "analyze", "follow", "monitor", "report", "collect/machine", "collect/recorder"],
    "export": ["query/words", "base", "allocator", "trace", "store", "analyze", "report"],
    "launch": ["base", "collect/ring"],
    "phantom": ["base"],
    "plan": ["base", "launch", "phantom", "collect/machine"],
    "simulate": ["base", "allocator", "trace", "store", "analyze", "launch", "plan"],
    "sweep": ["base", "trace", "store", "import", "analyze", "collect/machine", "launch"],
    "doctor": ["base", "trace/sample.h", "collect/ring", "collect/machine", "launch"],
    "publish": ["base", "launch", "analyze", "trace", "collect/machine", "monitor", "inprocess", "http"],
    "cpp_api": ["base", "store", "analyze", "monitor", "inprocess", "loading", "batching", "report", "publish", "query", "launch", "tidemark"],
    "query": ["base", "store", "import", "analyze", "report", "simulate"],
    "cli": ["query/words", "query/describe", "query/results", "base", "allocator", "trace", "store", "import", "model", "analyze", "report", "export", "query", "launch",
            "doctor", "plan", "publish", "simulate", "sweep", "follow", "monitor", "http", "tui", "collect/ring", "collect/machine",
            "collect/recorder"],
}  # fmt: skip

# What the code inside the recorded program may include of C++'s library: what C has too, and what makes no use of its runtime.
PLAIN = {
    "cerrno", "cinttypes", "csignal", "cstdarg", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctime",
    "array", "atomic", "bit", "concepts", "initializer_list", "limits", "new", "span", "type_traits", "utility",
}  # fmt: skip

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def stage_of(path):
    """The longest name of the table that `path` (below src/, or as it is included) begins with; None outside the table."""
    parts = path.split("/")
    for length in (2, 1):
        name = "/".join(parts[:length])
        if len(parts) > length and name in TABLE:
            return name
    return None


def check_include(path, stage, included, system):
    """What is wrong with one include of the file at `path`, or None."""
    if system:
        of_cxx = not included.endswith(".h") and "/" not in included
        if stage == "collect/process" and of_cxx and included not in PLAIN:
            return f"<{included}>: collect/process runs inside other programs and may include only what needs libc alone"
        return None
    target = stage_of(included)
    if target is None and included.split("/")[0] != "tidemark":
        return f'"{included}": not the path of a header from src/ or include/'
    if target == stage:
        return None
    allowed = TABLE[stage]
    if included in allowed or target in allowed or included.split("/")[0] in allowed:
        return None
    return f'"{included}": {stage} may include {", ".join(allowed) or "nothing"} only'


def check(root):
    source = Path(root) / "src"
    problems = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cpp", ".c"):
            continue
        name = path.relative_to(source).as_posix()
        stage = stage_of(name)
        if stage is None:
            problems.append(f"src/{name}:1: {name.split('/')[0]} has no line in the table of scripts/check_includes.py")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            wrong = found and check_include(name, stage, found[1] or found[2], found[1] is None)
            if wrong:
                problems.append(f"src/{name}:{number}: {wrong}")
    return problems


def main():
    problems = check(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
