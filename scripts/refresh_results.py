#!/usr/bin/env python3
"""Writes what is made from the descriptions of results (src/query/results): share/schema, share/types/results.d.ts, the
modules of python/tidemark/reading/results, and the tables of keys in docs, between

    <!-- keys of leaks -->
    <!-- end of keys -->

    scripts/refresh_results.py [--check] [PROGRAM]    PROGRAM: build/release/bin/tidemark
    --check: writes nothing, prints which files differ and exits with 1 if any does
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = re.compile(r"(<!-- keys of ([a-z_-]+) -->\n).*?(<!-- end of keys -->\n)", re.DOTALL)


def made_files(program):
    """{file: text}, as far as the program says it; and what is wrong with the page of the documentation."""

    def schema(*words):
        return subprocess.run([program, "schema", *words], check=True, capture_output=True, encoding="utf-8").stdout

    listed = [line.split() for line in schema("--list").splitlines()]
    names = [words[0] for words in listed]
    shared = {words[0] for words in listed if "shared" in words}
    in_python = {words[0] for words in listed if "python" in words}
    files = {ROOT / "share/types/results.d.ts": schema("--to", "typescript")}
    for name in names:
        if name in in_python:
            files[ROOT / f"python/tidemark/reading/results/{name.replace('-', '_')}.py"] = schema(name, "--to", "python")
        if name not in shared:
            files[ROOT / f"share/schema/{name}.json"] = schema(name)
    tables = {name: schema(name, "--to", "markdown") for name in names}
    placed = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        here = [found[2] for found in TABLE.finditer(text)]
        placed += here
        if here:
            files[page] = TABLE.sub(lambda found: f"{found[1]}\n{tables.get(found[2], '')}\n{found[3]}", text)
    problems = [f"docs: no page has the table of keys of {name}" for name in names if name not in placed]
    problems += [f"docs: a page has a table of keys of {name}, which is not described" for name in placed if name not in tables]
    known = {path.name for path in files if path.parent == ROOT / "share/schema"}
    problems += [
        f"share/schema/{path.name} is of no command" for path in (ROOT / "share/schema").glob("*") if path.name not in known
    ]
    return files, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/bin/tidemark"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    files, problems = made_files(options.program)
    for path, text in files.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            problems.append(f"{path.relative_to(ROOT)} is not what the descriptions say: run scripts/refresh_results.py")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
