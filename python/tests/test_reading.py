"""``tidemark.read()`` and the analyses: the commands' results as typed objects."""

from __future__ import annotations

import copy
import doctest
import gc
import importlib
import inspect
import json
import lzma
import os
import pickle
import pkgutil
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields, is_dataclass
from html import escape
from pathlib import Path
from typing import Any

import pytest
from reading_files import PARAMETER_BYTES, SNAPSHOTS, command, golden_recordings, json_of, record

import tidemark
from tidemark import _engine
from tidemark.reading import results
from tidemark.reading.results.common import Owner
from tidemark.reading.run import Blocks, Run
from tidemark.restart import judge_restart

OWNERS = ("category", "component", "layer", "module", "phase", "step")
METHODS = [analysis["name"] for analysis in _engine.analyses()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden_recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded"))


def own_fields(kind: type) -> Any:
    """The names declared by the class itself."""
    return inspect.get_annotations(kind) if sys.version_info >= (3, 10) else vars(kind).get("__annotations__", {})


def plain(value: Any) -> Any:
    """A result as JSON, without None values."""
    if is_dataclass(value):
        return {f.name: plain(item) for f in fields(value) if (item := getattr(value, f.name)) is not None}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("source", ["recorded", "layers", "default", "oom_leak"])
@pytest.mark.parametrize("name", METHODS)
def test_an_analysis_says_what_its_command_says(name: str, source: str, request: pytest.FixtureRequest) -> None:
    if source == "recorded":
        path = request.getfixturevalue("recorded")
    elif source == "layers":
        path = request.getfixturevalue("folder") / "layers.tide"
    else:
        path = SNAPSHOTS / f"{source}.pickle.xz"
    result = getattr(tidemark.read(path), name)()
    document = json_of(name, path)
    assert str(result) == command(name, path).rstrip("\n")
    assert result.to_dict() == document
    assert plain(result) == without_null(document)


def test_settings_are_simulated_as_the_command_does() -> None:
    path = SNAPSHOTS / "oom_fragmentation.pickle.xz"
    result = tidemark.read(path).simulate("expandable_segments:True", memory="2GiB", device="cuda:0", allocator="model")
    words = f"--set expandable_segments:True --memory 2GiB --device cuda:0 --allocator model {path}".split()
    document = json_of("simulate", *words)
    assert str(result) == command("simulate", *words).rstrip("\n")
    assert result.to_dict() == document
    assert plain(result) == without_null(document)
    with pytest.raises(ValueError, match=r"memory: invalid value '1KiB' .expected a size from 20 MiB"):
        tidemark.read(path).simulate(memory="1KiB")
    with pytest.raises(ValueError, match="expected one of auto, pytorch, model"):
        tidemark.read(path).simulate(allocator="mine")  # type: ignore[arg-type]


def test_options_are_those_of_the_commands() -> None:
    for analysis in _engine.analyses():
        options = {option["name"].replace("-", "_") for option in analysis["options"]}
        options -= {"fail_on_leak", "rank"}  # an exit code; of jobs, in Job.summary()
        options |= {"at"} if analysis["takes_moment"] else set()
        parameters = inspect.signature(getattr(Run, analysis["name"])).parameters
        explicit = {name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY}
        assert explicit - {"device"} == options, analysis["name"]
        assert ("chosen" in parameters) == analysis["takes_filter"], analysis["name"]
    assert set(own_fields(Blocks)) == {"device", "module", "component", "category", "phase"}
    assert "rank" in inspect.signature(tidemark.Job.summary).parameters


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "tree",
            {"min_share": 0.2, "by_count": True, "at": "end", "depth": 3},
            "--min-share 0.2 --by-count --at end --depth 3",
        ),
        ("tree", {"min_share": "20%", "module": "*", "depth": 3}, "--min-share 20% --module * --depth 3"),
        ("breakdown", {"by": "module", "category": "activation"}, "--by module --category activation"),
        ("table", {"by": "size", "top": 2, "device": "cuda:0"}, "--by size --top 2 --device cuda:0"),
        ("timeline", {"by": "category", "points": 20}, "--by category --points 20"),
        ("leaks", {"min_growth": "1KiB/step", "warmup": 1}, "--min-growth 1KiB/step --warmup 1"),
        ("explain", {"capacity": 85 << 30, "failures": 0}, f"--capacity {85 << 30} --failures 0"),
    ],
)
def test_options_mean_what_they_mean_to_the_command(name: str, options: dict[str, Any], words: str, folder: Path) -> None:
    path = folder / "layers.tide"
    assert getattr(tidemark.read(path), name)(**options).to_dict() == json_of(name, path, *words.split())


#: Features missing in the recordings of this test: compiled code, samples of GPUs, a control group with a limit, advice on an
#: out-of-memory error, a request to a private pool, blocks that are freed steps later.
RARE = {
    "Frame": {"compiled", "source_nodes"},
    "OfRecording": {"simulated_gpu"},
    "TableRow": {"most_by"},  # of a snapshot with pools and stacks
    "RestartRank": {"killed_pid"},
    "RestartChange": {"batch_divisor", "stack", "until_step"},
    "RestartVerdict": {"next_attempt", "not_applied"},
    "NextAttempt": {"change", "changed_arguments", "command", "environment"},
    "ChangedArgument": {"name", "option", "value", "was"},
    "LedgerAt": {"transient_peak_bytes"},
    "RankRow": {"device_used_bytes"},
    "UnusedForecast": {"latest_seconds"},
    "HostMemory": {"cgroup_limit_bytes"},
    "HostLedgerAt": {"other_processes_rss_bytes"},
    "FailedRequest": {"pool"},
    "Failure": {"advice", "device_free_sampled_at_ns", "other_processes_bytes"},
    "FailureAdvice": {"kind", "held_bytes", "confidence", "has_request", "suffices", "block_count", "modules", "stack"},
    "ModuleHeld": {"module", "held_bytes"},
    "LeakSite": {"freed_after_steps", "requested_bytes"},
    "KeptSite": {"device", "bytes", "block_count", "step_count", "times", "stack"},
    "HostGrowth": {"of", "from_bytes", "from_ns", "to_bytes", "to_ns", "bytes_per_second", "tensor_bytes"},
    "AllocatorOutcome": {"peak_inactive_split_bytes"},  # this and the next are for PyTorch's own allocator
    "Simulation": {"torch_version"},
    "OtherGpu": {"device", "peak_allocated_bytes", "stack", "rank"},
}


def visit(value: Any, seen: dict[type, set[str]]) -> None:
    if isinstance(value, tuple):
        for item in value:
            visit(item, seen)
    if not is_dataclass(value):
        return
    for field in fields(value):
        item = getattr(value, field.name)
        for kind in type(value).__mro__:
            if item is not None and field.name in own_fields(kind):
                seen.setdefault(kind, set()).add(field.name)
        visit(item, seen)


def results_of(run: tidemark.Run) -> list[Any]:
    """Every analysis, with every grouping."""
    found = []
    for analysis in _engine.analyses():
        option = next((option for option in analysis["options"] if option["name"] == "by"), None)
        choices = option["expected"][len("one of ") :].split(", ") if option else []
        for by in [None, *choices]:
            try:
                found.append(getattr(run, analysis["name"])(**({} if by is None else {"by": by})))
            except tidemark.TidemarkError as error:  # the recording does not have the data
                assert "versions" not in str(error)
    return found


def test_every_key_has_a_field_and_every_field_occurs(folder: Path, recorded: Path) -> None:
    # from_json() refuses keys without fields, and fields without keys that are not optional. Optional ones:
    seen: dict[type, set[str]] = {}
    paths = [path for path in sorted(folder.glob("*.tide")) if path.name != "damaged.tide"]
    snapshots = ["default", "oom_leak", "oom_private_pool", "oom_fragmentation", "streams", "late", "oom_limit"]
    for path in [recorded, *paths, *(SNAPSHOTS / f"{name}.pickle.xz" for name in snapshots)]:
        for result in results_of(tidemark.read(path)):
            visit(result, seen)
    layers = tidemark.read(folder / "layers.tide")
    visit(tidemark.compare(folder / "job.rank0.tide", folder / "job.rank2.tide", fail_over=0), seen)
    for by in OWNERS:
        visit(tidemark.compare(layers, recorded, group_by=by), seen)
    visit(tidemark.compare(layers, layers), seen)
    visit(tidemark.read(sorted(folder.glob("job.rank*.tide"))).summary(), seen)
    visit(layers.summary(category="activation"), seen)
    visit(layers.leaks(min_growth=0), seen)
    visit(tidemark.read(SNAPSHOTS / "oom_leak.pickle.xz").explain(capacity="80GiB"), seen)
    visit(tidemark.read(SNAPSHOTS / "default.pickle.xz").fragmentation(simulate="model"), seen)
    for name in ("default", "oom_limit"):
        visit(tidemark.read(SNAPSHOTS / f"{name}.pickle.xz").simulate(search=True, allocator="model"), seen)
    ranks = sorted(folder.glob("job.rank*.tide"))
    for job in ([SNAPSHOTS / "oom_leak.pickle.xz"], [SNAPSHOTS / "oom_fragmentation.pickle.xz"], [recorded], ranks):
        visit(judge_restart(job, simulate="model"), seen)
    missing = {}
    for module in pkgutil.iter_modules(results.__path__):
        of_module = importlib.import_module(f"{results.__name__}.{module.name}")
        for name, kind in vars(of_module).items():
            if not is_dataclass(kind) or kind.__module__ != of_module.__name__:
                continue
            never = set(own_fields(kind)) - seen.get(kind, set())
            if never:
                missing[name] = never
    pages = sorted((Path(__file__).parents[2] / "docs" / "commands").glob("*.md"))
    documented = "".join(page.read_text() for page in pages)
    for name, never in missing.items():
        assert never <= RARE.get(name, set()), (name, never)
        assert all(re.search(rf"`([\w.\[\]]*\.)?{key}`", documented) for key in never), name


def test_peaks_are_pytorchs_own() -> None:
    for truth in sorted(SNAPSHOTS.glob("*.truth.json")):
        said = json.loads(truth.read_text())
        if not said.get("complete"):
            continue
        summary = tidemark.read(str(truth).replace(".truth.json", ".pickle.xz")).summary()
        device = next(device for device in summary.devices if device.device == "cuda:0")
        assert device.peak_allocated_bytes == said["peak"]["allocated_bytes"], truth.name
        assert device.peak_active_bytes == said["peak"]["active_bytes"], truth.name


def test_parameters_and_their_states_are_counted(recorded: Path) -> None:
    breakdown = tidemark.read(recorded).breakdown(device="cpu")
    categories = {category.category: category for category in breakdown.devices[0].categories}
    assert categories["parameter"].tensor_bytes == PARAMETER_BYTES
    assert categories["parameter"].confidence == "exact"
    assert categories["gradient"].tensor_bytes == PARAMETER_BYTES
    assert categories["optimizer_state"].tensor_bytes == 2 * PARAMETER_BYTES + 2 * 4  # and a step count for each


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tree", {"min_share": "lots"}, "min-share: invalid value 'lots' .expected a share such as 1% or 0.01"),
        ("summary", {"by": "colour"}, "expected one of call-site, category, component, layer, module, phase, step"),
        ("summary", {"category": "gradients"}, "expected one of parameter, buffer, gradient"),
        ("timeline", {"points": 2}, "expected an integer from 8 to 1000000"),
        ("tree", {"at": "5 o'clock"}, "at: invalid time '5 o'clock' .expected peak, end, a time such as 12.5s"),
        ("table", {"top": -1}, "expected an integer"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(name: str, options: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(tidemark.read(folder / "layers.tide"), name)(**options)


def test_a_wrong_keyword_is_a_type_error(folder: Path) -> None:
    run = tidemark.read(folder / "layers.tide")
    with pytest.raises(TypeError, match="summary has no option at"):
        run.summary(at="end")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        run.ledger(category="activation")  # type: ignore[call-arg]


def test_what_the_recording_has_not_is_said(folder: Path) -> None:
    run = tidemark.read(folder / "layers.tide")
    with pytest.raises(tidemark.TidemarkError, match=r"layers\.tide.*cuda:7"):
        run.summary(device="cuda:7")
    with pytest.raises(tidemark.TidemarkError, match=r"cuda:7"):
        _ = run.at("end", device="cuda:7").blocks


def test_files_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "attacked"),))

    (tmp_path / "attack.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [[Attack()]]}))
    (tmp_path / "cut.pickle.xz").write_bytes((SNAPSHOTS / "default.pickle.xz").read_bytes()[:700])
    for name, message in [
        ("missing.tide", "missing.tide: no such file"),
        (".", "is a directory; it contains no .tide files"),
        ("attack.pickle", "nothing was run"),
        ("cut.pickle.xz", "cut off at offset 700"),
    ]:
        with pytest.raises(tidemark.TidemarkError, match=message):
            tidemark.read(tmp_path / name)
    assert not (tmp_path / "attacked").exists()
    with pytest.raises(tidemark.TidemarkError, match="damaged header"):
        tidemark.read(folder / "damaged.tide")
    with pytest.raises(tidemark.TidemarkError, match=r"name the recordings in it: .*\.tide"):
        tidemark.read(folder)


def test_of_a_recording_that_is_cut_off_what_there_is_is_read(recorded: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.tide"
    cut.write_bytes(recorded.read_bytes()[:-1])  # in the record of the end, behind all events
    summary = tidemark.read(cut).summary()
    assert not summary.data_quality.complete
    assert summary.event_count == tidemark.read(recorded).summary().event_count


def test_a_file_that_is_replaced_after_it_was_read(recorded: Path, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    shutil.copy(recorded, path)
    whole, streamed = tidemark.read(path), tidemark.read(path, blocks=False)
    assert (
        streamed.summary().to_dict() == whole.summary().to_dict()
    )  # which reads the blocks of a failed request, and drops them
    before = whole.leaks().to_dict()
    shutil.copy(folder / "layers.tide", path)
    assert whole.leaks().to_dict() == before
    for ask in (streamed.leaks, streamed.leaks, lambda: streamed.blocks):
        with pytest.raises(tidemark.TidemarkError, match=r"run\.tide: has changed since it was read; read it again"):
            ask()
    path.unlink()
    assert len(whole.blocks) > 0


def test_threads_share_a_recording(folder: Path) -> None:
    path = folder / "layers.tide"
    run = tidemark.read(path)
    names = [name for name in METHODS if name != "explain"] * 3
    expected = {name: getattr(tidemark.read(path), name)().to_dict() for name in set(names)}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: (name, getattr(run, name)().to_dict()), names))
        again = list(pool.map(lambda _: tidemark.read(path).summary().to_dict(), range(4)))
    assert all(expected[name] == document for name, document in found)
    assert all(document == expected["summary"] for document in again)


def test_results_are_frozen_and_can_be_copied_pickled_and_compared(folder: Path) -> None:
    run = tidemark.read(folder / "layers.tide")
    result = run.timeline()
    text, svg = str(result), result.to_svg()
    pickled = pickle.dumps(result)
    copies = [copy.copy(result), copy.deepcopy(result), pickle.loads(pickled)]
    del run, result
    gc.collect()
    for each in copies:
        assert each == copies[0]
        assert str(each) == text
        assert each.to_svg() == svg
        assert each.to_dict() == json.loads(each.to_json())
    with pytest.raises(FrozenInstanceError):
        copies[0].devices = ()


def test_notebooks_get_text_and_figure(recorded: Path) -> None:
    run = tidemark.read(recorded)
    assert "data:image/svg+xml;base64," in run.timeline()._repr_html_()
    assert "data:image/svg+xml;base64," in run.breakdown()._repr_html_()
    html = run.summary()._repr_html_()
    assert "<pre" in html
    assert "MiB allocated" in html
    assert "data:image" not in html
    assert repr(run.summary()) == f"<tidemark Summary of {recorded}: print() shows it>"
    assert run.summary().to_svg() is None


def test_notebooks_get_tables_where_results_are_tables(recorded: Path, folder: Path) -> None:
    run = tidemark.read(recorded)
    html = run.breakdown(category="parameter")._repr_html_()
    size = "2.0 MiB"  # 2,099,200 bytes
    assert f'<td style="text-align:left">parameter</td><td>exact</td><td>{size}</td><td>100.0%</td><td>2</td>' in html
    html = run.table(top=1)._repr_html_()
    (section,) = run.table(top=1).sections
    assert html.count("<tr>") == 2 and f"<p>({section.other_row_count} more)</p>" in html
    assert escape(section.rows[0].stack.label) in html
    html = tidemark.read(folder / "leaking.tide").leaks()._repr_html_()
    assert "<summary>Leak: 1 call site grows by 39.1 KiB every 4 steps</summary>" in html
    assert "<td>9.8 KiB</td><td>195.3 KiB</td><td>5</td>" in html
    hostile = tidemark.read(folder / "hostile.tide")
    assert "<script" not in hostile.table()._repr_html_() + hostile.temporary()._repr_html_()


def test_the_processes_of_a_job(folder: Path) -> None:
    paths = sorted(folder.glob("job.rank*.tide"))
    job = tidemark.read(paths)
    assert [run.path for run in job] == [str(path) for path in paths]
    assert len(job[1:3]) == 2
    summary = job.summary()
    assert summary.to_dict() == json_of("summary", *paths)
    assert summary.ranks is not None
    assert [row.rank for row in summary.ranks.rows if row.outlier] == [2]
    assert [one.process.rank for one in job.summary(rank=2).recordings] == [2]
    alone = tidemark.read(paths[:1]).summary()
    assert alone.ranks is None
    assert len(alone.recordings) == 1


def test_comparing_says_what_the_command_says(folder: Path, recorded: Path) -> None:
    a, b = folder / "rank0.tide", folder / "training.tide"
    comparison = tidemark.compare(a, tidemark.read(b), by="traffic", ignore_lines=True)
    assert comparison.to_dict() == json_of("compare", a, b, "--by", "traffic", "--ignore-lines")
    assert str(comparison) == command("compare", a, b, "--by", "traffic", "--ignore-lines").rstrip("\n")
    same = tidemark.compare(recorded, recorded, fail_over="5%", category="parameter")
    assert same.budget is not None
    assert not same.budget.exceeded
    assert all(row.kind == "unchanged" for device in same.devices for row in device.rows)
    with pytest.raises(ValueError, match=r"fail-over: invalid value 'lots' \(expected a share such as 5%"):
        tidemark.compare(a, b, fail_over="lots")


def test_rules_of_components_are_read(folder: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("head path *\n")
    path = folder / "layers.tide"
    said = json_of("breakdown", path, "--component-rules", rules)
    assert tidemark.read(path, component_rules=rules).breakdown().to_dict() == said
    assert said != json_of("breakdown", path)
    rules.write_text("nonsense\n")
    with pytest.raises(tidemark.TidemarkError, match=r"rules\.txt"):
        tidemark.read(path, component_rules=rules)


def test_the_engine_is_loaded_when_something_is_read() -> None:
    loaded = "print('tidemark._engine' in sys.modules)"
    code = f"import sys, tidemark; {loaded}; tidemark.read; {loaded}"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False", "True"]


def test_owners_are_fields_of_every_list_by_owner() -> None:
    assert tuple(field.name for field in fields(Owner)) == OWNERS


def test_the_examples_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "python-reading.md"
    if not page.exists():  # tests of an installed package, without the repository
        pytest.skip("the page is not here")
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    shutil.copy(golden_recordings(tmp_path) / "layers.tide", tmp_path / "run.tide")
    (tmp_path / "oom.pickle").write_bytes(lzma.decompress((SNAPSHOTS / "oom_leak.pickle.xz").read_bytes()))
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 20
    assert found.failed == 0


def test_other_settings_are_replayed_by_the_pytorch_of_this_interpreter() -> None:
    torch = pytest.importorskip("torch")
    if torch.version.cuda is None:
        pytest.skip("PyTorch's CUDA allocator is in builds for CUDA only")
    simulation = tidemark.read(SNAPSHOTS / "default.pickle.xz").fragmentation(simulate="pytorch").simulation
    assert simulation is not None
    assert f"Replayed by PyTorch {torch.__version__}" in simulation
