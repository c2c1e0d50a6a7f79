"""``tidemark`` and ``python -m tidemark``: replaces the interpreter by the program in the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "bin" / "tidemark"  # not resolved: in a build folder this file is a link to the sources


def main() -> None:
    """Executes the program with this process's arguments and environment; returns only by an error."""
    if sys.argv[1:2] in (["mcp"], ["preflight"]) and sys.executable:
        os.environ["TIDEMARK_PYTHON"] = sys.executable  # the command is a part of this package
    try:
        os.execv(PROGRAM, ["tidemark", *sys.argv[1:]])
    except OSError as error:
        sys.exit(
            f"tidemark: {PROGRAM} does not start: {error.strerror}. "
            "`pip install .` in a clone brings it; or build, and put build/release/python on PYTHONPATH"
        )


if __name__ == "__main__":
    main()
