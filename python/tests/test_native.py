"""The errors of the package if its extension modules are missing."""

from __future__ import annotations

import ast
import inspect
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tidemark
from tidemark import _native, _recorder


def test_modules_are_there() -> None:
    error = ImportError("something else")
    assert _native.explained(error) is error


def test_help_and_reference_say_the_same() -> None:
    stub = ast.parse(Path(tidemark.__file__).with_name("_recorder.pyi").read_text(encoding="utf-8"))
    texts = {each.name: text for each in stub.body if isinstance(each, ast.FunctionDef) and (text := ast.get_docstring(each))}
    assert set(texts) == {"mark", "pause", "resume", "step", "range", "is_recording"}
    assert texts == {name: inspect.getdoc(getattr(_recorder, name)) for name in texts}


def test_sources_alone_say_what_is_missing(tmp_path: Path) -> None:
    modules = shutil.ignore_patterns("*.so", "bin", "lib", "share", "__pycache__")
    shutil.copytree(Path(tidemark.__file__).parent, tmp_path / "tidemark", ignore=modules)
    code = "import tidemark; tidemark.read"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("ImportError: tidemark has no _engine and _recorder here: `pip install .` in a clone brings them")


def test_a_free_threaded_interpreter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "MODULES", ("_engine_of_another_abi",))
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: int(name == "Py_GIL_DISABLED"))
    message = str(_native.explained(ImportError("no module")))
    assert f"free-threaded python3.{sys.version_info.minor}t loads no modules of the stable ABI" in message
    assert "`tidemark run`" in message


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    package = Path(tidemark.__file__).parent
    (tmp_path / "tidemark").mkdir()
    for name in ("__init__.py", "__main__.py", "_exports.py"):
        shutil.copy(package / name, tmp_path / "tidemark" / name)
    command = [sys.executable, "-m", "tidemark", "--version"]
    result = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert f"{tmp_path}/tidemark/bin/tidemark does not start: No such file or directory" in result.stderr


def test_the_command_is_the_program() -> None:
    command = [sys.executable, "-m", "tidemark", "--version"]
    assert subprocess.check_output(command, text=True).strip() == f"tidemark {tidemark.__version__}"
