#!/usr/bin/env python3
"""Runs the commands of documentation pages, and compares their output with the pages.

    TIDEMARK_BUILD=build/release tests/package/docs/check_examples.py docs/scenarios/leak.md [--update]

A block that begins with ```console has commands behind `$ ` and their output below; a line `...` stands for any lines, and
`...` within a line for any part of it. The commands of a page run one after the other in an empty folder that has the
repository's examples/ and tests/. Values that differ from run to run (times, dates, process ids, versions, addresses, differences
in percent) may differ, and so may spaces. `python` is this interpreter, or with the comment `<!-- python: cuda -->` at the
page's top the one in TIDEMARK_PHANTOM_PYTHON, for the phantom GPU. A page with `<!-- attempts: 3 -->` that differs is run again,
so many times at most: threads of PyTorch release a tensor a moment earlier or later, which a rounded size may show. --update
replaces differing output in the page; output that ends with a line `...` there keeps its number of lines.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
ANY = "..."
SKIPPED = 77
ATTEMPTS = re.compile(r"<!-- attempts: (\d+) -->")
VARYING = [
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", "(date)"),
    (r"\b\d+(\.\d+)* ?(ns|us|µs|ms|s|min|h)\b", "(time)"),
    (r"\b(pid|tid) \d+( on \S+)?", r"\1 (number)"),
    (r"\b\d+\.\d+\.\d+(\+\w+)?\b", "(version)"),
    (r"\b0x[0-9a-f]+\b", "(address)"),
    (r"[+-]\d+(\.\d+)?%", "(difference)"),
    (r"[ \t]+", " "),
]


def comparable(text: str) -> list[str]:
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return [line.strip() for line in text.strip().splitlines()]


def line_pattern(line: str) -> str:
    return r"(?:.*\n)*?" if line == ANY else re.escape(line).replace(re.escape(ANY), ".*") + "\n"


def equal(expected: list[str], printed: list[str]) -> bool:
    return re.fullmatch("".join(map(line_pattern, expected)), "".join(line + "\n" for line in printed)) is not None


def examples(block: str) -> list[tuple[str, str]]:
    """(command, output) of each command of a block."""
    return [(command, output) for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


def updated(expected: str, printed: str) -> str:
    """The new output of a command; as many lines as before where the last one was `...`."""
    before, now = expected.splitlines(), printed.rstrip().splitlines()
    if before and before[-1].strip() == ANY and len(now) >= len(before):
        now = [*now[: len(before) - 1], ANY]
    return "".join(line + "\n" for line in now)


def environment(python: str) -> dict[str, str]:
    build = Path(os.environ["TIDEMARK_BUILD"]).resolve()
    return {
        **os.environ,
        "PATH": f"{build / 'bin'}:{Path(python).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{build / 'python'}:{ROOT / 'tests/startup/no_compiler'}",
        "OMP_NUM_THREADS": "1",  # as on any machine
        "COLUMNS": "120",
    }


def check(page: Path, python: str, update: bool) -> bool:
    text = page.read_text()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "tests"):
            (Path(folder) / name).symlink_to(ROOT / name)

        def run_block(match: re.Match[str]) -> str:
            nonlocal good
            found = examples(match[1])
            if not found:
                sys.exit(f"{page}: a block of ```console without a command behind `$ `")
            parts = []
            for command, expected in found:
                done = subprocess.run(
                    command, shell=True, cwd=folder, env=environment(python), text=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                )  # fmt: skip
                printed = comparable(done.stdout)
                if not equal(comparable(expected), printed):
                    print(f"{page}: $ {command}")
                    if update:
                        expected = updated(expected, done.stdout)
                    else:
                        good = False
                        lines = difflib.unified_diff(comparable(expected), printed, "in the page", "printed", lineterm="")
                        print(*lines, sep="\n")
                parts.append(f"$ {command}\n{expected}")
            return "".join(parts)

        checked = BLOCK.sub(run_block, text)
    if checked == text and not BLOCK.search(text):
        sys.exit(f"{page}: no block of ```console to check")
    if update:
        page.write_text(checked)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, nargs="+")
    parser.add_argument("--update", action="store_true", help="write what was printed into the page where it differs")
    args = parser.parse_args()
    good = True
    for page in args.page:
        python = sys.executable
        text = page.read_text()
        if "<!-- python: cuda -->" in text:
            python = os.environ.get("TIDEMARK_PHANTOM_PYTHON", "")
            if not python:
                print(f"{page}: skipped, TIDEMARK_PHANTOM_PYTHON names no interpreter with a PyTorch for CUDA")
                return SKIPPED
        asked = ATTEMPTS.search(text)
        attempts = int(asked[1]) if asked and not args.update else 1
        good = any(check(page, python, args.update) for _ in range(attempts)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
