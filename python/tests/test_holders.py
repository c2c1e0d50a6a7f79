"""Holders of a storage: chains compared with objects that the test itself built."""

from __future__ import annotations

import gc
import itertools
import math
import sys
import threading
import time
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tidemark
from tidemark._holders import Holders, _answer, _heap, _scene, _search
from tidemark._holders._types import HolderChain, HolderStep, StorageOwner

torch = pytest.importorskip("torch")

HERE = "test_holders.py:"
NAME = "kept_by_tests.kept"
kept: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Any:
    """Hides objects made by imports, a quarter of a million, which would take half a second to walk each time."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    global kept
    with FakeTensorMode():
        torch.empty(1)  # imports its dependencies now, not in the middle of the tests
    gc.collect()
    gc.freeze()
    kept = {}
    module = sys.modules["kept_by_tests"] = ModuleType("kept_by_tests")
    module.kept = kept  # type: ignore[attr-defined]
    yield
    del sys.modules["kept_by_tests"]
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _empty() -> Any:
    yield
    kept.clear()


def paths(target: object, **options: Any) -> list[str]:
    return [chain.path for chain in tidemark.holders(target, **options).chains]


def block(count: int = 1000) -> Any:
    return torch.zeros(count)


def test_globals_attributes_items_and_keys() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ModuleDict({"head": torch.nn.Linear(5, 2)}))
    kept["model"] = model
    kept["losses"] = [0, 1, (2, block())]
    kept["cache"] = {("a", 1): {"x": block(7)}}
    name = f"{NAME}"
    assert f"{name}['model'][1].head.weight" in paths(model[1]["head"].weight)
    assert f"{name}['losses'][2][1]" in paths(kept["losses"][2][1])
    assert f"{name}['cache'][('a', 1)]['x']" in paths(kept["cache"][("a", 1)]["x"])


def test_owners_have_kind_size_and_device() -> None:
    kept["x"] = block()
    kept["row"] = kept["x"][:10]
    found = tidemark.holders(kept["row"])
    assert (found.bytes, found.device, found.address) == (4000, "cpu", kept["x"].data_ptr())
    assert {(owner.kind, owner.what) for owner in found.owners} == {
        ("tensor", "Tensor float32 [1000]"),
        ("view", "Tensor float32 [10], 40 of 4000 bytes"),
    }


def test_local_variables_with_the_line() -> None:
    mine = block()
    found = tidemark.holders(mine).chains
    line = sys._getframe().f_lineno - 1
    function = test_local_variables_with_the_line
    assert [(chain.kind, chain.path) for chain in found] == [("local", f"{function.__name__}() at {place(line)}: mine")]


def place(line: int) -> str:
    from pathlib import Path

    path = Path(__file__)
    try:
        return f"{path.relative_to(Path.cwd())}:{line}"
    except ValueError:
        return f"{path.parent.name}/{path.name}:{line}"


def test_closures_and_default_arguments() -> None:
    def make() -> Any:
        shared, other = block(), block(3)

        def inner(a: Any = other) -> Any:
            return shared, a

        return inner

    kept["f"] = make()
    shared, other = kept["f"]()
    addresses = shared.data_ptr(), other.data_ptr()
    del shared, other
    assert paths(addresses[0]) == [f"{NAME}['f'].<locals>.shared"]
    assert paths(addresses[1]) == [f"{NAME}['f'].__defaults__[0]"]


def test_slots_classes_methods_and_generators() -> None:
    class Slotted:
        __slots__ = ("value",)

    class Holder:
        cache: Any = None

        def method(self) -> None: ...

    slotted, holder = Slotted(), Holder()
    slotted.value, holder.own, Holder.cache = block(1), block(2), block(3)
    kept.update(slotted=slotted, bound=holder.method)

    def generate() -> Any:
        inside = block(4)
        yield inside.data_ptr()

    kept["generator"] = generate()
    inside = next(kept["generator"])
    addresses = [slotted.value.data_ptr(), holder.own.data_ptr(), Holder.cache.data_ptr()]
    del slotted, holder, Holder, Slotted
    name = f"{NAME}"
    assert paths(addresses[0]) == [f"{name}['slotted'].value"]
    assert f"{name}['bound'].__self__.own" in paths(addresses[1])
    assert any(path.endswith(".cache") for path in paths(addresses[2]))
    (path,) = paths(inside)
    assert path.startswith(f"{name}['generator'] → ") and "generate() at " in path and path.endswith(": inside")


def test_gradients_and_saved_tensors_of_graphs() -> None:
    weight = torch.nn.Parameter(torch.ones(4, 4))
    weight.sum().backward()
    kept["weight"] = weight
    gradient = tidemark.holders(weight.grad)
    assert [owner.kind for owner in gradient.owners] == ["gradient"]
    assert f"{NAME}['weight'].grad" in [chain.path for chain in gradient.chains]

    hidden = torch.ones(8, 4) @ weight
    kept["losses"] = [hidden.exp().relu().sum()]
    node = kept["losses"][0].grad_fn.next_functions[0][0].next_functions[0][0]
    if not hasattr(node._raw_saved_result, "unpack_hook"):
        assert any("hooks" in note for note in tidemark.holders(hidden).notes)
        return
    saved = node._saved_result.data_ptr()
    del node, hidden
    found = tidemark.holders(saved)
    assert [owner.kind for owner in found.owners] == ["saved tensor"]
    assert found.chains[0].path == f"{NAME}['losses'][0].grad_fn → (1 node) → ExpBackward0._saved_result"


def test_unpack_hooks_are_not_run() -> None:
    calls = []

    def unpack(value: Any) -> Any:
        calls.append(value)
        return value

    x = torch.ones(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value.clone(), unpack):
        kept["y"] = x.exp()
    assert any("hook" in note for note in tidemark.holders(kept["y"]).notes)
    assert calls == []


def test_numpy_arrays_also_in_containers_that_are_not_tracked() -> None:
    pytest.importorskip("numpy")
    kept["inner"] = {"only": block().numpy()}
    gc.collect()  # after which CPython does not track a dict of untracked objects
    found = tidemark.holders(kept["inner"]["only"])
    kinds = {owner.kind: owner.chains[0].path for owner in found.owners}
    assert kinds == {
        "numpy array": f"{NAME}['inner']['only']",
        "tensor": f"{NAME}['inner']['only'].base",
    }


def test_memory_of_numpy_has_the_array_as_owner() -> None:
    numpy = pytest.importorskip("numpy")
    kept["array"] = numpy.zeros(100, numpy.float32)
    kept["tensor"] = torch.from_numpy(kept["array"])
    found = tidemark.holders(kept["tensor"])
    assert {owner.kind for owner in found.owners} == {"numpy array", "tensor"}


def test_cycles_are_named() -> None:
    class Node:
        pass

    def make() -> int:
        first, second = Node(), Node()
        first.child, second.parent = [second], first  # type: ignore[attr-defined]
        second.tensor = block()  # type: ignore[attr-defined]
        return int(second.tensor.data_ptr())  # type: ignore[attr-defined]

    gc.disable()
    try:
        address = make()
        (chain,) = tidemark.holders(address).chains
        assert (chain.kind, chain.path) == ("cycle", "<Node>.tensor")
        assert chain.cycle == "<Node>.parent.child[0] = <Node>"
    finally:
        gc.enable()
    gc.collect()
    assert tidemark.holders(address).owners == ()


def test_other_threads_and_exceptions() -> None:
    ready, done = threading.Event(), threading.Event()
    addresses: list[int] = []

    def work() -> None:
        in_thread = block()
        addresses.append(in_thread.data_ptr())
        ready.set()
        done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    found = paths(addresses[0])
    done.set()
    thread.join()
    assert len(found) == 1 and found[0].endswith(": in_thread") and HERE in found[0]

    def fail() -> None:
        failing = block()
        raise ValueError(failing.data_ptr())

    try:
        fail()
    except ValueError as error:
        address = error.args[0]
        found = paths(address)
    (path,) = found
    assert path.startswith("exception being handled.__traceback__ → ") and "fail() at " in path and path.endswith(": failing")


class Hostile:
    """Every operation on it fails, and is counted."""

    touched = 0

    def __getattribute__(self, name: str) -> Any:
        Hostile.touched += 1
        raise RuntimeError(name)

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        Hostile.touched += 1
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        Hostile.touched += 1
        raise RuntimeError

    def __hash__(self) -> int:
        Hostile.touched += 1
        return 1

    def __repr__(self) -> str:
        Hostile.touched += 1
        raise RuntimeError


class HostileDict(dict):  # type: ignore[type-arg]
    items = __iter__ = __getitem__ = __getattribute__ = __len__ = Hostile.__repr__  # type: ignore[assignment]


def test_no_code_of_the_program_runs() -> None:
    hostile = Hostile()
    object.__setattr__(hostile, "secret", block())
    mapping = HostileDict()
    dict.__setitem__(mapping, hostile, block(3))
    kept["list"] = [hostile, mapping]
    addresses = [object.__getattribute__(hostile, "secret").data_ptr(), next(iter(dict.values(mapping))).data_ptr()]
    Hostile.touched = 0
    del hostile, mapping
    found = [paths(address) for address in addresses]
    touched = Hostile.touched
    assert touched == 0
    assert found == [[f"{NAME}['list'][0].secret"], [f"{NAME}['list'][1][<Hostile>]"]]


def test_subclasses_with_code_of_their_own() -> None:
    calls = []

    class Mine(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            calls.append(args)
            return super().__torch_function__(*args, **kwargs)

    kept["mine"] = block().as_subclass(Mine)
    address = kept["mine"].data_ptr()
    calls.clear()
    found = tidemark.holders(address)
    assert calls == []
    assert f"{NAME}['mine']" in [chain.path for chain in found.chains]


def test_leaves_nothing_behind() -> None:
    class Marked:
        pass

    marked = Marked()
    marked.tensor = block()  # type: ignore[attr-defined]
    kept["marked"] = marked
    reference, tensor = weakref.ref(marked), weakref.ref(marked.tensor)  # type: ignore[attr-defined]
    tidemark.holders(marked.tensor)  # type: ignore[attr-defined]
    before = sys.getrefcount(marked), sys.getrefcount(marked.tensor)  # type: ignore[attr-defined]
    gc.disable()
    try:
        result = tidemark.holders(marked.tensor), tidemark.largest_holders(3)  # type: ignore[attr-defined]
        assert (sys.getrefcount(marked), sys.getrefcount(marked.tensor)) == before  # type: ignore[attr-defined]
        kept.clear()
        del marked
        assert reference() is None and tensor() is None
    finally:
        gc.enable()
    assert result[0].owners


def test_the_collector_is_as_before() -> None:
    assert gc.isenabled()
    tidemark.holders(block())
    assert gc.isenabled()
    gc.disable()
    try:
        tidemark.holders(block())
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_largest_by_storage() -> None:
    kept["big"] = torch.zeros(3_000_000)
    kept["view"] = kept["big"][:5]
    kept["medium"] = torch.zeros(2_000_000)
    found = tidemark.largest_holders(2)
    assert [each.bytes for each in found] == [12_000_000, 8_000_000]
    assert len(found[0].owners) == 2
    assert found.bytes >= 20_000_000 and found.storages >= 2
    assert len(tidemark.largest_holders(2, device="cuda")) == 0
    assert f"{NAME}['medium']" in str(found)


def test_same_answer_twice_and_bounded() -> None:
    tensor = block()
    for index in range(20):
        kept[f"list {index:02}"] = [tensor]
    first, second = tidemark.holders(tensor, max_chains=4), tidemark.holders(tensor, max_chains=4)
    assert [c.path for c in first.chains] == [c.path for c in second.chains]
    assert len(first.chains) == 4
    assert first.owners[0].references == 21  # the lists, and the variable
    nested: list[Any] = [block(5)]
    address = nested[0].data_ptr()
    for _ in range(30):
        nested = [nested]
    kept["deep"] = nested
    del nested
    shallow = tidemark.holders(address, max_depth=10)
    assert any("max_depth" in note for note in shallow.notes)
    assert paths(address) == [f"{NAME}['deep']" + "[0]" * 31]


@pytest.mark.parametrize("late", [_heap, _search, _scene])
def test_a_search_that_is_not_given_the_time(late: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners are known, and no chain is invented."""
    kept["x"] = [block(5)]
    key = torch.Tensor.untyped_storage(kept["x"][0])._cdata
    looks = itertools.chain([time.perf_counter()] if late is _scene else [], itertools.repeat(math.inf))  # it begins in time
    monkeypatch.setattr(late, "time", SimpleNamespace(perf_counter=looks.__next__))
    (found,), complete, _ = _scene.explain_storages(torch, [key], seconds=3600)
    assert not complete
    assert [(owner.kind, owner.chains) for owner in found.owners] == [("tensor", ())]


def test_answers_have_the_chains_that_lead_somewhere() -> None:
    """An owner held by native code has a chain too, the shortest: its type."""
    native = StorageOwner("tensor", "Tensor float32 [2]", (HolderChain("native", "<Tensor>", ()),))
    named = StorageOwner("view", "Tensor float32 [1]", (HolderChain("global", "train.kept[3]", (HolderStep("list", "[3]"),)),))
    assert _answer._chains(Holders(8, 8, "cpu", (native, named))) == {"chains": ["train.kept[3]"], "native": False}
    assert _answer._chains(Holders(8, 8, "cpu", (native,))) == {"chains": [], "native": True}
    unknown = StorageOwner("tensor", "Tensor float32 [2]", ())  # the time limit was reached
    assert _answer._chains(Holders(8, 8, "cpu", (unknown,))) == {"chains": [], "native": False}


def test_tensors_without_memory_are_passed_over() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        kept["fake"] = torch.empty(5)
    kept["real"] = block(7)
    assert tidemark.holders(kept["fake"]).bytes is None
    assert f"{NAME}['real']" in paths(kept["real"])


def test_freed_addresses_bad_targets_and_output() -> None:
    found = tidemark.holders(8)
    assert (found.bytes, found.owners) == (None, ())
    assert "No live Python object" in str(found)
    with pytest.raises(TypeError, match="not str"):
        tidemark.holders("x")
    with pytest.raises(ValueError, match="max_chains"):
        tidemark.holders(8, max_chains=0)
    kept["<b>"] = block()
    held = tidemark.holders(kept["<b>"])
    assert "&lt;b&gt;" in held._repr_html_() and "<b>" not in held._repr_html_()
    assert held.to_dict()["owners"][0]["chains"][0]["path"] == f"{NAME}['<b>']"
    assert "所有者" in str(tidemark.holders(kept["<b>"], lang="zh"))


def test_frozen_objects_are_said_to_be_hidden() -> None:
    assert any("gc.freeze()" in note for note in tidemark.holders(8).notes)
    gc.unfreeze()  # the last test, so that the others stay fast
    kept["x"] = block()
    found = tidemark.holders(kept["x"])
    assert found.objects > 100_000 and found.notes == ()
