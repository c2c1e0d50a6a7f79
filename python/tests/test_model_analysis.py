"""analyze_model: compared with numbers computed by hand, and with PyTorch's, PEFT's and FSDP's own counts."""

from __future__ import annotations

import json
import logging
import pickle
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

import tidemark
from tidemark.model_analysis.groups import ModuleNode

torch = pytest.importorskip("torch")
nn = torch.nn
MB = 2**20


def analyze(model: Any, **options: Any) -> tidemark.ModelAnalysis:
    return tidemark.analyze_model(model, log=False, **options)


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.up = nn.Linear(size, 2 * size)
        self.norm = nn.LayerNorm(size)


class Small(nn.Module):
    """Embedding 10 x 4, three blocks of 4 x 8 + 8 + 4 + 4, a half-precision head 4 x 10 and a buffer of 3 int64."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.layers = nn.ModuleList(Block(4) for _ in range(3))
        self.head = nn.Linear(4, 10, bias=False).half()
        self.register_buffer("ids", torch.zeros(3, dtype=torch.int64))


def test_totals_and_groups_are_those_worked_out_by_hand() -> None:
    model = Small()
    model.embed.requires_grad_(False)
    result = analyze(model)
    assert (result.total_params, result.trainable_params) == (40 + 3 * 48 + 40, 3 * 48 + 40)
    assert result["param_efficiency"] == pytest.approx(100 * 184 / 224)
    assert result["memory_mb"] == (4 * (40 + 144) + 2 * 40) / MB
    assert result["buffers_mb"] == 24 / MB
    assert result["by_dtype"] == {"float32": 736, "float16": 80}
    assert result["by_device"] == {"cpu": 816}
    assert result["by_layer"] == {"embed": 160, "layers.0": 192, "layers.1": 192, "layers.2": 192, "head": 80}
    assert result["by_shape"] == {"[10, 4]": 160 + 80, "[8, 4]": 3 * 128, "[8]": 3 * 32, "[4]": 6 * 16}
    assert result["repeated_blocks"] == [{"first": "layers.0", "last": "layers.2", "count": 3, "parameters": 48, "bytes": 192}]
    assert result["by_module"]["layers"] == 576
    assert result["by_module"]["layers.1.up"] == 160
    assert result["by_module"][""] == result.parameter_bytes == 816


def test_the_tree_of_modules_has_subtotals_that_add_up() -> None:
    def check(node: ModuleNode) -> None:
        assert node.total.bytes == node.own.bytes + sum(child.total.bytes for child in node.children)
        assert node.total.parameters == node.own.parameters + sum(child.total.parameters for child in node.children)
        for child in node.children:
            check(child)

    tree = analyze(Small()).facts.tree
    check(tree)
    assert [(child.path, child.kind) for child in tree.children] == [
        ("embed", "Embedding"),
        ("layers", "ModuleList"),
        ("head", "Linear"),
    ]
    assert tree.buffer_bytes == 24


def test_a_tied_weight_counts_once_and_both_names_are_told() -> None:
    model = nn.Module()
    model.embed, model.head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
    model.head.weight = model.embed.weight
    result = analyze(model)
    assert result["tied"] == [["embed.weight", "head.weight"]]
    assert (result.total_params, result.parameter_bytes) == (40, 160)
    assert result.total_params == sum(parameter.numel() for parameter in model.parameters())


def test_views_of_one_storage_count_each_byte_once() -> None:
    storage = torch.zeros(100)
    whole = {"a": storage[:60], "b": storage[40:], "c": storage[50:60]}
    result = analyze(whole)
    assert [tensor.bytes for tensor in result.facts.tensors] == [240, 160, 0]
    assert result["tied"] == [["a", "b", "c"]]
    columns = torch.zeros(8, 10)
    result = analyze({"left": columns[:, :5], "right": columns[:, 5:], "all": columns, "seen_often": columns[:1].expand(9, 10)})
    assert [tensor.bytes for tensor in result.facts.tensors] == [160, 160, 0, 0]


def test_gradients_are_counted_where_they_are() -> None:
    model = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 1))
    assert analyze(model)["gradients_mb"] == 0
    model[1](model[0](torch.ones(1, 4)).detach()).sum().backward()
    result = analyze(model)
    assert (result.gradient_bytes, result["params_with_gradients"]) == (4 * 3, 2)
    assert result.facts.tensors[0].gradient_bytes is None


def test_oversized_parameters_are_listed_and_logged_with_name_and_mb(caplog: pytest.LogCaptureFixture) -> None:
    model = nn.Sequential(nn.Linear(512, 1024), nn.Linear(4, 4))
    with caplog.at_level(logging.INFO, logger="tidemark"):
        result = tidemark.analyze_model(model, "two layers", oversized_mb=2.0)
    assert result["oversized"] == [{"name": "0.weight", "memory_mb": 2.0}]
    assert [(record.levelname, record.name) for record in caplog.records] == [("INFO", "tidemark"), ("WARNING", "tidemark")]
    assert "two layers: 2.0 MB, 525,332 parameters, 525,332 of them trainable (100.00%)" in caplog.messages[0]
    assert "0.weight: 2.0 MB ([1024, 512], float32)" in caplog.messages[1]
    assert analyze(model)["oversized"] == []


def test_messages_are_chinese_where_asked_for() -> None:
    text = str(analyze(Small(), lang="zh"))
    assert "可训练" in text and "trainable" not in text


def test_it_is_a_dict_that_json_and_pickle_take_and_prints_as_a_table() -> None:
    result = analyze(Small(), name="small")
    assert isinstance(result, dict) and result == result.to_dict() == json.loads(json.dumps(result))
    copy = pickle.loads(pickle.dumps(result))
    assert copy == result and str(copy) == str(result) and copy.total_params == result.total_params
    lines = str(result).splitlines()
    assert lines[0] == "small"
    assert lines[2].split() == ["all", "parameters", "224", "0.000778"]
    assert any(line.split()[:3] == ["layers.0", "to", "2,"] for line in lines)
    html = analyze(nn.Linear(1, 1), name="<b>")._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html


def test_a_model_without_parameters_has_no_share() -> None:
    result = analyze(nn.ReLU())
    assert (result.total_params, result["param_efficiency"], result["memory_mb"]) == (0, None, 0)
    assert str(result)


def test_what_cannot_be_read_is_named_and_the_rest_counted() -> None:
    class Broken(torch.Tensor):
        @property
        def shape(self) -> Any:
            raise RuntimeError("gone")

    model = nn.Sequential(nn.LazyLinear(3), nn.Linear(2, 2))
    model.register_buffer("broken", torch.zeros(1).as_subclass(Broken))
    result = analyze(model)
    assert {entry["name"] for entry in result["unread"]} == {"0.weight", "0.bias", "broken"}
    assert any("RuntimeError: gone" in issue.message for issue in result.facts.issues)
    assert result.total_params == 6


def test_modules_that_contain_each_other_end() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(3, 3)
    first.other, second.other = second, first
    result = analyze(first)
    assert result.total_params == 6 + 12
    assert sorted(result["by_module"]) == ["", "other"]


def test_attributes_made_up_by_a_model_do_not_lead_astray() -> None:
    class Agreeing(nn.Module):
        def __getattr__(self, name: str) -> Any:
            return SimpleNamespace(name=name)

    class Proxy:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    model = Agreeing()
    model.layer = nn.Linear(2, 3)
    assert analyze(model).total_params == 9
    assert analyze(Proxy(nn.Linear(2, 3))).total_params == 9


@pytest.mark.filterwarnings("ignore")
def test_scripted_and_wrapped_models() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    expected = analyze(model)
    scripted = analyze(torch.jit.script(model))
    assert (scripted.total_params, scripted["by_layer"]) == (expected.total_params, expected["by_layer"])
    assert scripted.buffer_bytes == expected.buffer_bytes == 8 * 4 * 2 + 8
    assert analyze(nn.DataParallel(model)).total_params == expected.total_params


def test_a_state_dict_and_what_is_no_model() -> None:
    model = Small()
    assert analyze(model.state_dict())["by_layer"]["layers.1"] == 192
    assert analyze(list(model.named_parameters())).total_params == 224
    for nothing in (3, "model.pt", torch.zeros(3), None):
        with pytest.raises(TypeError, match=r"analyze_model takes a torch\.nn\.Module"):
            analyze(nothing)
    with pytest.raises(TypeError, match="pairs of name and tensor"):
        analyze([torch.zeros(3)])


def test_without_torch_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="analyze_model needs PyTorch"):
        tidemark.analyze_model(object())


@pytest.mark.filterwarnings("ignore")
def test_layers_quantized_by_torch() -> None:
    model = nn.Sequential(nn.Linear(16, 8))
    quantized = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    result = analyze(quantized)
    assert (result.total_params, result.trainable_params) == (16 * 8 + 8, 0)
    assert result["quantized"] == {"torch qint8": 16 * 8}
    assert result.parameter_bytes == 16 * 8 + 4 * 8


def test_four_bit_weights_count_the_numbers_that_they_pack() -> None:
    class Params4bit(nn.Parameter):
        """Like bitsandbytes: bytes of two numbers each, and a state with the shape and the scales of blocks of 64."""

    weight = Params4bit(torch.zeros(64 * 32 // 2, 1, dtype=torch.uint8), requires_grad=False)
    nested = SimpleNamespace(absmax=torch.zeros(1), code=torch.zeros(256), offset=None, state2=None)
    weight.quant_state = SimpleNamespace(
        shape=torch.Size((64, 32)),
        quant_type="nf4",
        absmax=torch.zeros(32, dtype=torch.uint8),
        code=torch.zeros(16),
        offset=torch.zeros(()),
        state2=nested,
    )
    model = nn.Module()
    model.weight = weight
    result = analyze(model)
    state = 32 + 16 * 4 + 4 + 4 + 256 * 4
    assert (result.total_params, result.parameter_bytes) == (2048, 1024 + state)
    assert result["quantization_state_bytes"] == state
    assert result["by_shape"] == {"[64, 32]": 1024 + state}
    assert result["quantized"] == {"4-bit nf4": 1024 + state}


def test_eight_bit_weights_have_a_scale_for_each_row() -> None:
    model = nn.Module()
    model.weight = nn.Parameter(torch.zeros(8, 4, dtype=torch.int8), requires_grad=False)
    model.weight.SCB = torch.zeros(8)
    result = analyze(model)
    assert (result.total_params, result["quantized"]) == (32, {"8-bit": 32 + 32})


def test_sparse_parameters_count_what_they_hold() -> None:
    model = nn.Module()
    model.weight = nn.Parameter(torch.eye(10).to_sparse())
    result = analyze(model)
    assert (result.total_params, result.parameter_bytes) == (100, 10 * 4 + 2 * 10 * 8)
    assert result["quantized"] == {}


@pytest.mark.filterwarnings("ignore")
def test_sharded_models_have_local_and_global_sizes() -> None:
    distributed = pytest.importorskip("torch.distributed")
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    distributed.init_process_group("fake", store=fake.FakeStore(), rank=0, world_size=4)
    try:
        mesh = distributed.init_device_mesh("cpu", (4,))
        sharded = analyze(fsdp.fully_shard(nn.Linear(8, 16, bias=False), mesh=mesh))
        assert (sharded.total_params, sharded.parameter_bytes, sharded["global_bytes"]) == (128, 128, 512)
        assert list(sharded["sharded"].values()) == [128]
        flat = analyze(fsdp.FullyShardedDataParallel(nn.Linear(8, 15), device_id=torch.device("cpu")))
        assert (flat.total_params, flat["global_bytes"]) == (135, 540)
        assert flat.parameter_bytes == 136 * 4 // 4  # padded to the ranks
        own = fsdp.FullyShardedDataParallel(nn.Linear(8, 16), device_id=torch.device("cpu"), use_orig_params=True)
        pieces = analyze(own)
        assert (pieces.total_params, pieces.parameter_bytes) == (144, 144)
        assert pieces["by_shape"]["[16, 8]"] == 144  # the first rank's quarter is of the weight
    finally:
        distributed.destroy_process_group()


def test_seven_billion_parameters_on_the_meta_device_take_less_than_a_second() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, vocab_size=32000
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    begin = time.process_time()
    result = analyze(model)
    assert time.process_time() - begin < 1.0
    block = 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096
    assert result.total_params == 2 * 32000 * 4096 + 32 * block + 4096
    assert result["by_layer"]["model.layers.31"] == 2 * block
    assert result["meta_bytes"] == result.parameter_bytes == 2 * result.total_params
