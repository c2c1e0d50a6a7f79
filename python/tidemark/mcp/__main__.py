"""``python -m tidemark.mcp [--allow-plan] [FOLDER]``: the server behind ``tidemark mcp``."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version


def main(words: list[str] | None = None) -> int:
    """Serves until the client closes standard input. 2: it cannot start."""
    parser = argparse.ArgumentParser("tidemark mcp", description="Lets an assistant ask about the recordings of a folder.")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=".")
    parser.add_argument("--allow-plan", action="store_true", help="also offer the tool plan, which runs programs of the folder")
    parser.add_argument("--plan-python", metavar="FILE", default=sys.executable, help="interpreter of these programs")
    options = parser.parse_args(words)
    problem = _missing()
    if problem:
        return _fail(problem)
    from tidemark._errors import TidemarkError
    from tidemark.mcp.server import serve

    try:
        serve(options.folder, options.plan_python if options.allow_plan else None)
    except TidemarkError as error:
        return _fail(str(error))
    return 0


def _missing() -> str:
    """The packages that this interpreter lacks, and how to install them."""
    try:
        found = version("mcp")
    except PackageNotFoundError:
        found = ""
    if found.partition(".")[0] == "2":
        return ""
    has = f"the package mcp {found}; version 2 is needed" if found else "no package mcp, which speaks the protocol"
    if sys.version_info < (3, 10):
        return f"{sys.executable} has {has}: it needs Python 3.10 or newer; name one that has it with --python"
    return f"{sys.executable} has {has}: `{sys.executable} -m pip install '.[mcp]'` in a clone of Tidemark installs it"


def _fail(message: str) -> int:
    sys.stderr.write(f"tidemark: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
