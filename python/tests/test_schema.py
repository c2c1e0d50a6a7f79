"""The schemas of ``share/schema`` compared with the commands' output, in the strictest reading: no additional keys."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from reading_files import PROGRAM, SNAPSHOTS, golden_recordings, json_of, record

from tidemark import _engine

jsonschema = pytest.importorskip("jsonschema")

ANALYSES = [analysis["name"] for analysis in _engine.analyses()]
#: Recordings with unknown owners of memory.
NOT_ATTRIBUTED = ("host",)
OWNERS = ("category", "component", "layer", "module", "phase", "step")


def schema_of(name: str) -> dict[str, Any]:
    """The schema as printed by the program, with every object closed."""
    text = subprocess.run([PROGRAM, "schema", name], check=True, capture_output=True, encoding="utf-8").stdout
    schema: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    for definition in schema["$defs"].values():
        definition.setdefault("additionalProperties", False)
    return schema


@pytest.fixture(scope="module")
def validators() -> dict[str, Any]:
    return {}


def check(validators: dict[str, Any], name: str, document: Any) -> None:
    if name not in validators:
        validators[name] = jsonschema.Draft202012Validator(schema_of(name))
    errors = [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validators[name].iter_errors(document)]
    assert errors == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden_recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("name", ANALYSES)
def test_what_an_analysis_prints_is_valid(name: str, folder: Path, recorded: Path, validators: dict[str, Any]) -> None:
    paths = [recorded, *(folder / f"{name}.tide" for name in ("layers", "training", "leaking", "host", "empty", "shared_gpu"))]
    paths += [SNAPSHOTS / f"{name}.pickle.xz" for name in ("default", "oom_leak", "oom_private_pool", "oom_fragmentation")]
    for path in paths:
        if name != "breakdown" or path.stem not in NOT_ATTRIBUTED:
            check(validators, name, json_of(name, path))
    check(validators, name, json_of(name, folder / "job.rank0.tide", folder / "job.rank1.tide"))


@pytest.mark.parametrize("name", ["summary", "table", "tree", "timeline", "temporary", "leaks", "fragmentation", "explain"])
def test_what_an_analysis_prints_by_owner_is_valid(name: str, folder: Path, validators: dict[str, Any]) -> None:
    for by in OWNERS:
        check(validators, name, json_of(name, folder / "layers.tide", "--by", by))


def test_what_other_commands_print_is_valid(folder: Path, validators: dict[str, Any]) -> None:
    a, b = folder / "job.rank0.tide", folder / "job.rank2.tide"
    check(validators, "compare", json_of("compare", a, b, "--group-by", "stack"))
    check(validators, "simulate", json_of("simulate", SNAPSHOTS / "default.pickle.xz", "--allocator", "model"))


def test_every_key_of_the_schema_is_closed_to_others(folder: Path, validators: dict[str, Any]) -> None:
    document = json_of("leaks", folder / "leaking.tide")
    document["unheard_of"] = 1
    with pytest.raises(AssertionError, match="unheard_of"):
        check(validators, "leaks", document)
