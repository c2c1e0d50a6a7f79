"""A hook of mkdocs: the API reference contains every public name of the package once. A page of docs/api names its
modules,

    <!-- public names of: tidemark.recording, tidemark._recorder -->

and gets the names that tidemark/_exports.py lists for these modules and modules inside them. A module without a page is
an error.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

MARKER = re.compile(r"^<!-- public names of: (.*) -->$", re.MULTILINE)
EXPORTS: dict[str, str] = runpy.run_path(str(Path(__file__).parent.parent / "python/tidemark/_exports.py"))["EXPORTS"]


def names_of(marker: re.Match[str]) -> list[str]:
    modules = [module.strip() for module in marker[1].split(",")]
    return [name for name, at in EXPORTS.items() if any(f"{at}.".startswith(f"{module}.") for module in modules)]


def on_files(files: Files, config: MkDocsConfig) -> None:
    placed: dict[str, list[str]] = {name: [] for name in EXPORTS}
    for file in files.documentation_pages():
        for marker in MARKER.finditer(file.content_string):
            for name in names_of(marker):
                placed[name].append(file.src_uri)
    for name, pages in placed.items():
        if len(pages) != 1:
            where = " and ".join(pages) or "no page"
            raise PluginError(f"tidemark.{name} of {EXPORTS[name]} is in {where} of docs/api: put its module into one")


def entry(name: str) -> str:
    return f"::: {EXPORTS[name]}.{name}\n    options:\n      heading: tidemark.{name}\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return MARKER.sub(lambda marker: "\n".join(map(entry, names_of(marker))), markdown)
