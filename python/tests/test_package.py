"""The package as a whole: the cost of importing it, the modules it loads, and its list of names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidemark
from tidemark._chinese import CHINESE
from tidemark._exports import EXPORTS


def test_import_loads_neither_torch_nor_numpy() -> None:
    heavy = "{'torch', 'numpy', 'pyarrow', 'pandas', 'logging', 'json'}"
    code = f"import sys, tidemark; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_every_public_name_has_a_docstring(name: str) -> None:
    value = getattr(tidemark, name)
    assert (value.__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tidemark.nothing


def test_translations_have_the_fields_of_their_templates() -> None:
    from string import Formatter

    def fields(template: str) -> list[str]:
        return sorted(name for _, name, _, _ in Formatter().parse(template) if name is not None)

    assert [english for english, chinese in CHINESE.items() if fields(english) != fields(chinese)] == []


def test_type_checkers_see_the_names_that_programs_get() -> None:
    import ast
    from pathlib import Path

    import tidemark._exports

    tree = ast.parse(Path(tidemark._exports.__file__).read_text(encoding="utf-8"))
    imports = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidemark.")
    ]
    assert {name.asname: node.module for node in imports for name in node.names} == EXPORTS
