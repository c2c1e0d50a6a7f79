"""A hook of mkdocs: pages may link to files of the repository outside of docs/, as ``../src/cli/commands.cpp``, as they do
when they are read in the repository. Each such file becomes a page of the site below ``repository/``; Markdown stays Markdown.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)")
FENCES = {".h": "cpp", ".py": "python", ".sh": "bash", ".txt": "text", ".yml": "yaml"}


def page_of(path: str) -> str:
    """The site's path of the repository's file `path`."""
    if path.startswith("docs/"):
        return path[len("docs/") :]
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def path_of(page: str) -> str:
    """The repository's file shown by the site's `page`."""
    return page[len("repository/") :] if page.startswith("repository/") else f"docs/{page}"


def targets(path: str, text: str) -> set[str]:
    """Files outside of docs/ that the repository's file `path` links to."""
    found = {posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) for link in LINK.findall(text)}
    return {target for target in found if not target.startswith("docs/") and (ROOT / target).is_file()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    # Files of the repository in the navigation, and link targets of pages, including added ones.
    waiting = ["CONTRIBUTING.md", "CHANGELOG.md"]
    for file in files.documentation_pages():
        waiting += targets(path_of(file.src_uri), file.content_string)
    while waiting:
        path = waiting.pop()
        if files.get_file_from_path(page_of(path)):
            continue
        content = (ROOT / path).read_text()
        if path.endswith(".md"):
            waiting += targets(path, content)
        else:
            suffix = Path(path).suffix
            content = f"# {path}\n\n~~~~{FENCES.get(suffix, suffix[1:])}\n{content}\n~~~~\n"
        files.append(File.generated(config, page_of(path), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = page.file.src_uri
    folder = posixpath.dirname(path_of(here))

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        if not (ROOT / target).is_file():
            return match[1]  # mkdocs reports that it is broken
        return posixpath.relpath(page_of(target), posixpath.dirname(here) or ".")

    return LINK.sub(link, markdown)
