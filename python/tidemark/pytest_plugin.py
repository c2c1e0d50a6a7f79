"""The pytest plugin: peak memory by test, limits, leaks, and a baseline.

pytest loads this with every run. Unless an option or a marker needs more, it only adds its options and checks each test's
markers once.
"""

from __future__ import annotations

from typing import Any

import pytest

_MARKERS = ("limit_memory", "no_leaks")
_NAME = "tidemark_watch"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tidemark", "peak GPU memory of tests")
    group.addoption("--tidemark", action="store_true", help="peak memory by test in the summary")
    group.addoption("--tidemark-top", type=int, default=10, metavar="N", help="tests to list; 0: all (default: 10)")
    group.addoption("--tidemark-baseline", metavar="FILE", help="compare the peaks with those of an earlier run, in this file")
    group.addoption("--tidemark-update-baseline", action="store_true", help="write the peaks into the baseline's file")
    group.addoption(
        "--fail-over", metavar="LIMIT", help="fail if a test's peak exceeds the baseline's by more than this: 5%%, 100MiB"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "limit_memory(size, device=None): fail the test if its peak memory, above its start, exceeds a size such as '2 GiB'; "
        "device: 'cuda' (each GPU), 'cuda:1', 'cpu' (the process's resident memory); none: each GPU, else 'cpu' (tidemark)",
    )
    config.addinivalue_line(
        "markers", "no_leaks(allowed=0): fail the test if it leaves tensors alive, and say who holds them (tidemark)"
    )
    config.addinivalue_line("markers", "tidemark_limit_memory: limit_memory with a device, where pytest-memray is active")
    option = config.option
    if option.fail_over is not None or option.tidemark_update_baseline:
        from tidemark._sizes import parse_growth

        if option.tidemark_baseline is None:
            raise pytest.UsageError("--fail-over and --tidemark-update-baseline need --tidemark-baseline FILE")
        try:
            parse_growth(option.fail_over or "0%")
        except ValueError as error:
            raise pytest.UsageError(f"--fail-over: {error}") from error
    if option.tidemark_top < 0:
        raise pytest.UsageError("--tidemark-top: 0 or more")
    if option.tidemark or option.tidemark_baseline is not None:
        _watch(config)


def _watch(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin(_NAME):
        return
    from tidemark._testing.watch import Watch

    try:
        config.pluginmanager.register(Watch(config), _NAME)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if any(item.get_closest_marker(name) for name in _MARKERS)]
    if not marked:
        return
    if config.pluginmanager.hasplugin("memray_manager"):
        from tidemark._testing.limits import hide_from_memray

        for item in marked:
            hide_from_memray(item)
    _watch(config)
    watch: Any = config.pluginmanager.get_plugin(_NAME)
    for item in marked:
        try:
            watch.check(item)
        except ValueError as error:
            raise pytest.UsageError(f"{item.nodeid}: {error}") from error
