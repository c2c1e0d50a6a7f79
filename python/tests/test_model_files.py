"""`tidemark model`, compared with the results of the safetensors library, PyTorch and PEFT for the same files."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tidemark

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors")
safetensors_torch = pytest.importorskip("safetensors.torch")
BUILD = os.environ.get("TIDEMARK_BUILD")
pytestmark = pytest.mark.skipif(not BUILD, reason="TIDEMARK_BUILD is not set")


def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [f"{BUILD}/bin/tidemark", "model", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def read(*arguments: Any) -> Any:
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.q_proj = torch.nn.Linear(64, 64, bias=False)
        self.down_proj = torch.nn.Linear(96, 64)
        self.norm = torch.nn.LayerNorm(64).half()


class Model(torch.nn.Module):  # type: ignore[misc]
    """Eleven equal blocks, so that their order is not alphabetical."""

    def __init__(self) -> None:
        super().__init__()
        self.model = torch.nn.Module()
        self.model.embed_tokens = torch.nn.Embedding(100, 64)
        self.model.layers = torch.nn.ModuleList(Block() for _ in range(11))
        self.lm_head = torch.nn.Linear(64, 100, bias=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    state = Model().state_dict()
    for name in ("one", "many"):
        (path / name).mkdir()
    safetensors_torch.save_file(state, path / "one" / "model.safetensors", {"format": "pt"})
    weight_map: dict[str, str] = {}
    for part in range(3):
        file = f"model-{part}.safetensors"
        tensors = dict(list(state.items())[part::3])
        safetensors_torch.save_file(tensors, path / "many" / file)
        weight_map.update(dict.fromkeys(tensors, file))
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (path / "many" / "model.safetensors.index.json").write_text(json.dumps(index))
    return path


def by_name(rows: list[dict[str, Any]], what: str) -> dict[str, int]:
    return {row[what]: row["bytes"] for row in rows}


def test_tensors_are_those_that_the_library_reads(folder: Path) -> None:
    file = folder / "one" / "model.safetensors"
    rows = list(csv.DictReader(io.StringIO(run(file, "--format", "csv").stdout)))
    with safetensors.safe_open(file, "pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    assert {row["tensor"] for row in rows} == set(tensors)
    for row in rows:
        tensor = tensors[row["tensor"]]
        assert json.loads(row["shape"]) == list(tensor.shape)
        assert (int(row["bytes"]), int(row["parameters"])) == (tensor.nbytes, tensor.numel())
        assert row["dtype"] == str(tensor.dtype).removeprefix("torch.")


def test_it_says_what_analyze_model_says_of_the_model(folder: Path) -> None:
    found = read(folder / "one")
    model = tidemark.analyze_model(Model(), log=False)
    assert (found["parameters"], found["bytes"]) == (model.total_params, model.parameter_bytes)
    assert by_name(found["layers"], "layer") == model["by_layer"]
    assert by_name(found["dtypes"], "dtype") == model["by_dtype"]
    assert by_name(found["shapes"], "shape") == model["by_shape"]
    assert by_name(found["modules"], "module") == {path: size for path, size in model["by_module"].items() if path and size}
    assert found["repeated_blocks"] == model["repeated_blocks"]
    assert found["metadata"] == {"format": "pt"}


def test_several_files_are_one_model(folder: Path) -> None:
    one, many = read(folder / "one"), read(folder / "many")
    assert len(many["files"]) == len(list((folder / "many").glob("*.safetensors"))) > 1
    assert {key: many[key] for key in ("parameters", "bytes", "layers", "modules", "dtypes")} == {
        key: one[key] for key in ("parameters", "bytes", "layers", "modules", "dtypes")
    }
    assert read(folder / "many" / "model.safetensors.index.json")["files"] == many["files"]


def test_types_have_pytorchs_names_and_sizes(tmp_path: Path) -> None:
    names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 float8_e4m3fn float8_e5m2"
    dtypes = [getattr(torch, name) for name in names.split()]
    tensors = {str(dtype): torch.zeros(3, 5, dtype=dtype) for dtype in dtypes}
    safetensors_torch.save_file(tensors, tmp_path / "types.safetensors")
    found = by_name(read(tmp_path / "types.safetensors")["dtypes"], "dtype")
    assert found == {name: 15 * getattr(torch, name).itemsize for name in names.split()}


def test_what_the_library_refuses_is_an_error(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "one" / "model.safetensors").read_bytes()
    length = int.from_bytes(whole[:8], "little")
    damaged = {
        "cut": whole[:-1],
        "longer": whole + b"x",
        "header": whole[: 8 + length // 2],
        "length": (length + 1).to_bytes(8, "little") + whole[8:],
        "huge": (1 << 62).to_bytes(8, "little") + whole[8:],
        "latin": whole[:20] + b"\xff" + whole[21:],
        "shape": whole.replace(b'"shape":[100,64]', b'"shape":[100,65]'),
        "empty": b"",
    }
    for name, content in damaged.items():
        file = tmp_path / f"{name}.safetensors"
        file.write_bytes(content)
        with pytest.raises(safetensors.SafetensorError):
            safetensors_torch.load_file(file)
        done = run(file)
        assert (done.returncode, done.stdout) == (2, ""), name
        assert done.stderr.startswith(f"tidemark: {file}: "), name


def test_a_file_of_torch_save_is_named_as_one(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(3)}, tmp_path / "model.bin")
    assert "torch.save" in run(tmp_path / "model.bin").stderr


def test_only_the_header_is_read(tmp_path: Path) -> None:
    file, size = tmp_path / "large.safetensors", 1 << 40
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with file.open("wb") as sparse:
        sparse.write(len(header).to_bytes(8, "little") + header)
        sparse.truncate(8 + len(header) + size)  # a terabyte, of which the disk holds nothing
    assert read(file)["bytes"] == size
    assert math.log2(read(file)["parameters"]) == 40
