#!/usr/bin/env python3
"""Checks the #include lines of src/ against the table of rooms in docs/architecture.md: which folder may see which headers.

The CMake targets exclude symbols of rooms that are not linked, but every header of src/ can be included from everywhere. A new
room gets one line in that table. Includes in tests and bench are not checked.

    scripts/check_includes.py [ROOT]       prints FILE:LINE: ERROR; exits with 1 if there is any
"""

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

# Rows of the table of rooms in docs/architecture.md: | `room` | what is in it | `room`, `header.h` |. A room is a folder of src/, or of src/collect; a longer
# name of the last column is a single header.
ROW = re.compile(r"^\| `([a-z_/]+)` \| .* \| ([^|]*) \|$")


def read_table():
    """Room -> the rooms and headers that it may include apart from itself."""
    text = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    section = text.split("\n## Rooms", 1)[1].split("\n## ", 1)[0]
    rows = [found for line in section.splitlines() if (found := ROW.match(line))]
    return {found[1]: re.findall(r"`([^`]+)`", found[2]) for found in rows}


# The headers of C++'s library that code inside the recorded program may include: those of C, and those that do not use its runtime.
PLAIN = {
    "cerrno", "cinttypes", "csignal", "cstdarg", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctime",
    "array", "atomic", "bit", "concepts", "initializer_list", "limits", "new", "span", "type_traits", "utility",
}  # fmt: skip

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def stage_of(path, table):
    """The longest room that is a prefix of `path` (below src/, or as it is included); None outside of rooms."""
    parts = path.split("/")
    for length in (2, 1):
        name = "/".join(parts[:length])
        if len(parts) > length and name in table:
            return name
    return None


def check_include(table, stage, included, system):
    """The error in one include of a file of room `stage`, or None."""
    if system:
        of_cxx = not included.endswith(".h") and "/" not in included
        if stage == "collect/process" and of_cxx and included not in PLAIN:
            return f"<{included}>: collect/process runs inside other programs and may include only what needs libc alone"
        return None
    target = stage_of(included, table)
    if target is None and included.split("/")[0] != "tidemark":
        return f'"{included}": not the path of a header from src/ or include/'
    if target == stage:
        return None
    allowed = table[stage]
    if included in allowed or target in allowed or included.split("/")[0] in allowed:
        return None
    return f'"{included}": {stage} may include {", ".join(allowed) or "nothing"} only'


def check(root):
    source = Path(root) / "src"
    table = read_table()
    problems = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cpp", ".c"):
            continue
        name = path.relative_to(source).as_posix()
        stage = stage_of(name, table)
        if stage is None:
            problems.append(f"src/{name}:1: {name.split('/')[0]} has no row in the table of docs/architecture.md")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            wrong = found and check_include(table, stage, found[1] or found[2], found[1] is None)
            if wrong:
                problems.append(f"src/{name}:{number}: {wrong}")
    return problems


def main():
    problems = check(sys.argv[1] if len(sys.argv) > 1 else REPOSITORY)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
