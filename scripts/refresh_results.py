#!/usr/bin/env python3
"""Writes what is made from the descriptions of results (src/query/results) and from the command line: share/schema,
share/types/results.d.ts, the modules of python/tidemark/reading/results, and in docs the tables of keys, the options of each
command, and the list of commands, between

    <!-- keys of leaks -->
    <!-- end of keys -->
    <!-- options of leaks -->
    <!-- end of options -->
    <!-- list of commands -->
    <!-- end of list -->

    scripts/refresh_results.py [--check] [PROGRAM]    PROGRAM: build/release/bin/tidemark
    --check: writes nothing, prints which files differ and exits with 1 if any does
"""

import argparse
import posixpath
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TABLE = re.compile(r"^(<!-- keys of ([a-z_-]+) -->\n).*?(<!-- end of keys -->\n)", re.DOTALL | re.MULTILINE)
OPTIONS = re.compile(r"^(<!-- options of ([a-z_-]+) -->\n).*?(<!-- end of options -->\n)", re.DOTALL | re.MULTILINE)
LIST = re.compile(r"^(<!-- list of commands -->\n).*?(<!-- end of list -->\n)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(commands/[a-z_-]+\.md)")  # as the program writes it, relative to docs


class Documentation:
    """The pages of docs with the program's tables in them."""

    def __init__(self, say):
        self.say = say
        self.pages = {}
        self.keys_placed = []
        self.options_placed = []
        self.commands = re.findall(r"\(commands/([a-z_-]+)\.md\)", say("help", "--to", "markdown"))

    def add(self, page, names):
        """Fills the markers of a page; `names` are those of the tables of keys."""
        folder = page.parent.relative_to(DOCS).as_posix()

        def made(*words):
            return LINK.sub(lambda link: posixpath.relpath(link[1], folder), self.say(*words))

        def keys(marker):
            self.keys_placed.append(marker[2])
            table = made("schema", marker[2], "--to", "markdown") if marker[2] in names else ""
            return f"{marker[1]}\n{table}\n{marker[3]}"

        def options(marker):
            self.options_placed.append((marker[2], page.relative_to(DOCS).as_posix()))
            known = marker[2] in self.commands
            return f"{marker[1]}\n{made('help', marker[2], '--to', 'markdown') if known else ''}\n{marker[3]}"

        text = page.read_text(encoding="utf-8")
        filled = OPTIONS.sub(options, TABLE.sub(keys, text))
        filled = LIST.sub(lambda marker: f"{marker[1]}\n{made('help', '--to', 'markdown')}\n{marker[2]}", filled)
        if filled != text:
            self.pages[page] = filled

    def problems(self, names):
        found = [f"docs: no page has the table of keys of {name}" for name in names if name not in self.keys_placed]
        found += [
            f"docs: a page has a table of keys of {name}, which is not described"
            for name in self.keys_placed
            if name not in names
        ]
        expected = [(name, f"commands/{name}.md") for name in self.commands]
        found += [f"docs/{page} has no options of {name}" for name, page in expected if (name, page) not in self.options_placed]
        found += [
            f"docs/{page} has the options of {name}" for name, page in self.options_placed if (name, page) not in expected
        ]
        return found


def made_files(program):
    """{file: text}, as far as the program says it; and what is wrong with the pages of the documentation."""

    def say(*words):
        return subprocess.run([program, *words], check=True, capture_output=True, encoding="utf-8").stdout

    listed = [line.split() for line in say("schema", "--list").splitlines()]
    names = [words[0] for words in listed]
    shared = {words[0] for words in listed if "shared" in words}
    in_python = {words[0] for words in listed if "python" in words}
    files = {ROOT / "share/types/results.d.ts": say("schema", "--to", "typescript")}
    for name in names:
        if name in in_python:
            module = ROOT / f"python/tidemark/reading/results/{name.replace('-', '_')}.py"
            files[module] = say("schema", name, "--to", "python")
        if name not in shared:
            files[ROOT / f"share/schema/{name}.json"] = say("schema", name)
    documentation = Documentation(say)
    for page in sorted(DOCS.rglob("*.md")):
        documentation.add(page, names)
    files |= documentation.pages
    problems = documentation.problems(names)
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
            problems.append(f"{path.relative_to(ROOT)} is not what the program says: run scripts/refresh_results.py")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
