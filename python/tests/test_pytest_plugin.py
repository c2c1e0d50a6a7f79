"""The pytest plugin: on the CPU in this process, with pytest-xdist and pytest-memray, and on a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import GPU_PYTHON, needs_gpu, on_gpu

from tidemark._sizes import bytes_text, parse_growth, parse_size
from tidemark._testing.baseline import compare

pytest_plugins = ["pytester"]
INSTALLED = any(
    entry.value == "tidemark.pytest_plugin" for each in distributions() for entry in each.entry_points
)  # pytest loads it then by itself
PLUGIN = ("-p", "no:cacheprovider", "-p", "no:memray", *(() if INSTALLED else ("-p", "tidemark.pytest_plugin")))


def run(pytester: pytest.Pytester, *arguments: str) -> Any:
    return pytester.runpytest_inprocess(*PLUGIN, *arguments)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2 GiB", 2 << 30),
        ("24 MB", 24 << 20),
        ("1.5KiB", 1536),
        ("7", 7),
        ("7 B", 7),
        (9, 9),
        (" 3 TiB ", 3 << 40),
        ("3 K", 3072),
        ("2Gi", 2 << 30),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1 XB", "5%", "3 KX", "3 iB", "9" * 400, None, -4, 1.5])
def test_bad_sizes(text: object) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_growth_and_text() -> None:
    assert parse_growth("5%") == (0.05, 0)
    assert parse_growth("100MiB") == (0.0, 100 << 20)
    for wrong in ("x%", "nan%", "inf%", "-1%"):
        with pytest.raises(ValueError, match="limit of growth"):
            parse_growth(wrong)
    assert [bytes_text(count) for count in (0, 1023, 1536, -(1 << 20), 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "-1.0 MiB",
        "5120.0 GiB",
    ]


def test_changes_against_a_baseline() -> None:
    before = {"a": {"cuda:0": 100}, "b": {"cuda:0": 100, "rss": 5}, "c": {"cuda:0": 50}}
    now = {"a": {"cuda:0": 105}, "b": {"cuda:0": 106, "rss": 500}, "c": {"cuda:0": 50}, "new": {"cuda:0": 9}}
    assert [(each.test, each.fails) for each in compare(before, now, "5%")] == [("b", True), ("a", False)]
    assert [(each.test, each.fails) for each in compare(before, now, "4 B")] == [("b", True), ("a", True)]
    assert [(each.test, each.fails) for each in compare(before, now, None)] == [("b", False), ("a", False)]


def test_nothing_is_loaded_unless_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_plain(request):
            assert not request.config.pluginmanager.hasplugin("tidemark_watch")
        """
    )
    run(pytester).assert_outcomes(passed=1)
    code = "import sys, tidemark.pytest_plugin; print([m for m in sys.modules if m.startswith('tidemark._') or m == 'torch'])"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert loaded.strip() == "['tidemark._exports']"


def test_leaks_are_named_and_fail(pytester: pytest.Pytester) -> None:
    pytest.importorskip("torch")
    pytester.makepyfile(
        test_leaking="""
        import pytest, torch
        cache = {}

        @pytest.mark.no_leaks
        def test_leaks():
            cache["step"] = [torch.zeros(1000)]

        @pytest.mark.no_leaks
        def test_cleans_up():
            cache["step"] = None
            a = torch.zeros(5000)
            a.self = a  # a cycle, which a collection frees

        @pytest.mark.no_leaks("8 KB")
        @pytest.mark.parametrize("count", [1000, 4000])
        def test_allowed(count):
            cache[count] = torch.zeros(count)

        @pytest.mark.no_leaks
        def test_fails_by_itself():
            kept = torch.zeros(10)
            assert kept.sum() == 1

        @pytest.mark.no_leaks
        def test_skips():
            pytest.skip("not now")

        @pytest.mark.xfail(strict=True)
        @pytest.mark.no_leaks
        def test_known_leak():
            cache["known"] = torch.zeros(3)
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=3, passed=2, skipped=1, xfailed=1)
    lines = result.stdout.lines
    first = lines.index("The test leaves 3.9 KiB in tensors on cpu")
    assert lines[first + 1].startswith("3.9 KiB on cpu at 0x") and lines[first + 2] == "  tensor: Tensor float32 [1000]"
    assert lines[first + 3] == "    test_leaking.cache['step'][0]"
    assert "    test_leaking.cache[4000]" in lines[lines.index("The test leaves 15.6 KiB in tensors on cpu") :]


def test_limit_of_the_process_and_table(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.limit_memory("20 MB", device="cpu")
        @pytest.mark.parametrize("megabytes", [1, 60])
        def test_limited(megabytes):
            bytearray(b"x") * (megabytes << 20)
        """
    )
    result = run(pytester, "--tidemark")
    result.assert_outcomes(passed=1, failed=1)
    output = result.stdout.str()
    assert "the process's resident memory grew by " in output and "the limit is 20.0 MiB (20971520 bytes)" in output
    assert "no CUDA device was used" in output
    row = next(line for line in output.splitlines() if line.strip().endswith("test_limited[60]") and "MiB" in line)
    assert 59 <= float(row.split()[0]) < 70


def test_an_exceeded_limit_names_the_lines_that_hold_most(pytester: pytest.Pytester) -> None:
    pytest.importorskip("torch")
    pytester.makepyfile(
        test_lines="""
        import pytest, torch

        @pytest.mark.limit_memory("20 MB", device="cpu")
        def test_large():
            small = torch.ones(1 << 20)
            large = torch.ones(10 << 20)

        @pytest.mark.limit_memory("20 MB", device="cuda:7")
        def test_of_a_device_without_use():
            torch.ones(1)
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    lines = result.stdout.lines
    first = lines.index("tensors hold 44.0 MiB at their peak:")
    assert [line.split()[:2] for line in lines[first + 1 : first + 3]] == [["40.0", "MiB"], ["4.0", "MiB"]]
    assert "test_large" in lines[first + 1] and "test_lines.py:6" in lines[first + 1]
    assert "limit_memory(device='cuda:7') was not checked: the test used no such device" in result.stdout.str()


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('limit_memory("2 XB", device="cuda")', "'2 XB' is not a size"),
        ('limit_memory("2 GB", device="tpu")', "'tpu' is not a device"),
        ("limit_memory()", "write @pytest.mark.limit_memory"),
        ("no_leaks(1, 2)", "write @pytest.mark.no_leaks"),
    ],
)
def test_markers_that_are_written_wrong(pytester: pytest.Pytester, marker: str, message: str) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.{marker}\ndef test_it(): pass\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-over", "5%"], "need --tidemark-baseline"),
        (["--tidemark-baseline", "none.json"], "none.json: cannot be read"),
        (["--tidemark-baseline", "other.json"], "other.json is not a baseline"),
        (["--tidemark-baseline", "other.json", "--fail-over", "much"], "'much' is not a size"),
        (["--tidemark-baseline", "fifo"], "fifo is not a file"),
        (["--tidemark", "--tidemark-top", "-1"], "0 or more"),
    ],
)
def test_options_that_are_written_wrong(pytester: pytest.Pytester, arguments: list[str], message: str) -> None:
    pytester.makepyfile("def test_it(): pass")
    pytester.path.joinpath("other.json").write_text("[]")
    os.mkfifo(pytester.path / "fifo")
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


@pytest.mark.parametrize(
    "tests",
    ['{"a": 1}', '{"a": {"cuda:0": "1"}}', '{"a": {"cuda:0": NaN}}', '{"a": {"cuda:0": -1}}', "[" * 100_000],
)
def test_a_baseline_that_somebody_else_wrote(pytester: pytest.Pytester, tests: str) -> None:
    pytester.makepyfile("def test_it(): pass")
    pytester.path.joinpath("base.json").write_text(f'{{"tidemark baseline": 1, "tests": {tests}}}')
    result = run(pytester, "--tidemark-baseline", "base.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "base.json" in result.stderr.str()


def test_a_baseline_that_cannot_be_written(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(): pass")
    pytester.path.joinpath("file").write_text("")
    result = run(pytester, "--tidemark-baseline", "file/base.json", "--tidemark-update-baseline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: file/base.json: cannot be written: *"])


def test_what_stands_in_for_torch_is_not_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys, types
        from unittest.mock import MagicMock
        import pytest

        @pytest.mark.parametrize("torch", [types.ModuleType("torch"), object(), None, MagicMock()])
        def test_it(torch):
            sys.modules["torch"] = torch

        def test_after(): pass
        """
    )
    before = sys.modules.get("torch")
    try:
        run(pytester, "--tidemark").assert_outcomes(passed=5)
    finally:
        if before is not None:
            sys.modules["torch"] = before


def test_names_do_not_control_the_terminal(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("globals()['test_\\x1b[31m\\x9b'] = lambda: None")
    result = run(pytester, "--tidemark")
    table = result.stdout.str().split("tidemark: peak memory by test")[1]
    assert r"test_\x1b[31m\x9b" in table and "\x1b" not in table and "\x9b" not in table


def test_workers_of_xdist(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("megabytes", [10, 20, 30, 40])
        @pytest.mark.limit_memory("35 MB", device="cpu")
        def test_limited(megabytes):
            bytearray(b"x") * (megabytes << 20)
        """
    )
    result = pytester.runpytest_inprocess(*PLUGIN, "-n", "2", "--tidemark", "--tidemark-top", "0")
    result.assert_outcomes(passed=3, failed=1)
    rows = [line.split()[0] for line in result.stdout.lines if "::test_limited[" in line and "MiB" in line.split()[1:2]]
    assert len(rows) == 4 and [round(float(row) / 10) for row in rows] == [4, 3, 2, 1]


def test_beside_memray(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_memray")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.limit_memory("10 MB")
        def test_of_memray():
            bytearray(20 << 20)

        @pytest.mark.limit_memory("10 MB", device="cpu")
        class TestOfTidemark:
            def test_small(self): pass
            def test_large(self):
                bytearray(b"x") * (30 << 20)
        """
    )
    result = pytester.runpytest_inprocess(*PLUGIN[:2], *PLUGIN[4:], "--memray")
    result.assert_outcomes(passed=1, failed=2)
    output = result.stdout.str()
    assert "Test is using" in output or "Test was limited" in output
    assert "resident memory grew by" in output


GPU_TESTS = """
import pytest, torch
kept = []

@pytest.fixture(scope="module")
def model():
    return torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")

@pytest.mark.limit_memory("20 MB", device="cuda")
@pytest.mark.parametrize("megabytes", [10, 30])
def test_limited(model, megabytes):
    torch.zeros(megabytes << 20, dtype=torch.uint8, device="cuda")

def test_table(model):
    for _ in range(3):
        torch.zeros(FACTOR << 20, dtype=torch.uint8, device="cuda:0")

@pytest.mark.no_leaks
def test_leaks(model):
    kept.append(torch.zeros(2 << 20, dtype=torch.uint8, device="cuda"))

@pytest.mark.no_leaks
def test_product():
    a = torch.zeros(256, 256, device="cuda", requires_grad=True)
    (a @ a).sum().backward()
"""


@needs_gpu
def test_on_a_gpu_with_a_baseline(pytester: pytest.Pytester) -> None:
    tests = pytester.path / "test_gpu.py"
    here = pytester.path / "packages"  # the GPU's interpreter may not have pytest: it gets this one's
    here.mkdir()
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py"):
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        source = Path(spec.origin)
        source = source.parent if source.name == "__init__.py" else source
        (here / source.name).symlink_to(source)
    metadata = Path(str(distribution("pluggy").locate_file(""))).glob("pluggy-*.dist-info")  # pytest reads its version there
    for folder in metadata:
        (here / folder.name).symlink_to(folder)
    package = find_spec("tidemark")
    assert package is not None and package.origin is not None
    path = os.pathsep.join([str(here), str(Path(package.origin).parents[1]), os.environ.get("PYTHONPATH", "")])

    def measure(factor: int, *arguments: str) -> str:
        tests.write_text(GPU_TESTS.replace("FACTOR", str(factor)))
        plan = on_gpu("--gpu", "H100-80GB", "-f", "-o", "plan.tide")
        done = subprocess.run(
            [*plan, GPU_PYTHON, "-m", "pytest", *PLUGIN, "--tidemark-baseline", "base.json", *arguments, str(tests)],
            env={**os.environ, "PYTHONPATH": path},
            cwd=pytester.path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    first = measure(100, "--tidemark", "--tidemark-update-baseline")
    assert "cuda:0: the test's peak is 30.0 MiB (31457280 bytes), the limit is 20.0 MiB" in first
    assert "The test leaves 2.0 MiB in tensors on cuda:0" in first and "test_gpu.kept[0]" in first
    assert "2 failed, 3 passed" in first
    peaks = json.loads((pytester.path / "base.json").read_text())["tests"]
    assert peaks["test_gpu.py::test_limited[10]"] == {"cuda:0": 10 << 20}
    assert peaks["test_gpu.py::test_table"] == {"cuda:0": 100 << 20}
    assert set(peaks) == {"test_gpu.py::test_limited[10]", "test_gpu.py::test_table", "test_gpu.py::test_product"}

    second = measure(106, "--fail-over", "5%", "-k", "table")
    assert "FAILED test_gpu.py::test_table cuda:0: 100.0 MiB → 106.0 MiB (+6.0 MiB, +6.0%)" in second
