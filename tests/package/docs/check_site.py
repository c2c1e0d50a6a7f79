#!/usr/bin/env python3
"""Builds the site, in which a broken link or anchor is an error, and checks that its pages load nothing from elsewhere and
that the reference of the Python package has each public name once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# Links for people, in the head.
NOT_LOADED = {"canonical", "prev", "next"}


class Loads(HTMLParser):
    """What a page loads, by its address."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(LOADED.get(tag, ""))
        if address and values.get("rel") not in NOT_LOADED:
            self.addresses.append(address)


def from_elsewhere(site: Path) -> list[str]:
    problems = []
    for page in sorted(site.rglob("*.html")):
        loads = Loads()
        loads.feed(page.read_text())
        problems += [f"{page.relative_to(site)} loads {a}" for a in loads.addresses if re.match(r"(https?:)?//", a)]
    return problems


def reference_problems(site: Path) -> list[str]:
    """Public names that do not appear exactly once in the reference."""
    sys.path.insert(0, str(ROOT / "python"))
    from tidemark._exports import EXPORTS

    pages = "".join(page.read_text() for page in site.glob("api/**/*.html"))
    found = {name: pages.count(f'<h2 id="{module}.{name}"') for name, module in EXPORTS.items()}
    return [f"tidemark.{name} is {count} times in the reference, not once" for name, count in found.items() if count != 1]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        # Not --quiet: warnings would not be counted then, and they are errors here.
        command = [sys.executable, "-B", "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
        if done.returncode != 0:
            return 1
        problems = from_elsewhere(Path(folder)) + reference_problems(Path(folder))
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
