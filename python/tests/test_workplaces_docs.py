"""The pages' examples: the workflow is valid, its commands know their options, and examples print the output in the pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROGRAM = Path(os.environ.get("TIDEMARK_BUILD", "")) / "bin" / "tidemark"

if not DOCS.is_dir():  # tests of an installed package, without the repository
    pytest.skip("the pages are not here", allow_module_level=True)


def blocks(page: str, kind: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def workflow_commands() -> list[str]:
    yaml = pytest.importorskip("yaml")
    (source,) = blocks("github-actions.md", "yaml")
    steps = yaml.safe_load(source)["jobs"]["memory"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_the_workflow_is_valid() -> None:
    for command in workflow_commands():
        script = re.sub(r"\$\{\{.*?\}\}", "1", command)
        assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_options_in_the_workflow_exist() -> None:
    if not PROGRAM.exists():
        pytest.skip("needs TIDEMARK_BUILD")
    pytest_help = subprocess.check_output([sys.executable, "-m", "pytest", "-p", "tidemark.pytest_plugin", "--help"], text=True)
    seen = 0
    for line in re.sub(r"\\\n\s*", "", "\n".join(workflow_commands())).splitlines():
        command, _, program = line.partition(" -- ")
        words = command.split()
        if words[:1] == ["tidemark"]:
            usage = subprocess.check_output([PROGRAM, words[1], "--help"], text=True)
            options = [word for word in words if word.startswith("--")]
            assert [word for word in options if word not in usage] == []
            seen += len(options)
        if "pytest" in program:
            options = [word for word in program.split() if word.startswith("--")]
            assert [word for word in options if word not in pytest_help] == []
            seen += len(options)
    assert seen >= 8


def test_who_holds_it_prints_what_the_page_shows() -> None:
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 11):
        pytest.skip("shows saved tensors")

    def comparable(text: str) -> str:
        return re.sub(r"0x[0-9a-f]+", "ADDRESS", text).strip()

    (shown,) = blocks("holders.md", "text")
    printed = subprocess.check_output([sys.executable, ROOT / "examples" / "who_holds_it.py"], text=True)
    assert comparable(printed) == comparable(shown)


def test_the_loop_writes_scalars(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    subprocess.check_call([sys.executable, ROOT / "examples" / "watch_loop.py"], cwd=tmp_path)
    (file,) = (tmp_path / "runs" / "watch_loop").glob("events.*")
    assert file.read_bytes().count(b"memory/rss_mib") == 4  # of 40 steps, every 10
