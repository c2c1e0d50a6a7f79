"""The part of the plugin that is registered only if an option or a marker needs it."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tidemark._sizes import bytes_text
from tidemark._testing import baseline
from tidemark._testing.call_sites import CallSites
from tidemark._testing.leaks import allowed_of, leaked, living
from tidemark._testing.limits import exceeded, limits_of, unchecked
from tidemark._testing.meter import RSS, Meter

_FIGURES = pytest.StashKey[dict[str, int]]()
_ATTRIBUTE = "tidemark_peaks"  # of a report: plain values, which pytest-xdist transfers from its workers


def _printable(text: str) -> str:
    """The text without terminal control characters, which names of tests may contain."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


class Watch:
    """Measures each test's call, checks its markers, and summarizes. In a run by pytest-xdist the workers measure and check."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        self._table: bool = option.tidemark
        self._top: int = option.tidemark_top
        self._baseline = Path(option.tidemark_baseline) if option.tidemark_baseline else None
        self._update: bool = option.tidemark_update_baseline
        self._fail_over: str | None = option.fail_over
        self._plugins = config.pluginmanager
        self._is_worker = hasattr(config, "workerinput")
        self._before: baseline.Figures = {}
        if self._baseline is not None and (self._baseline.exists() or not self._update):
            self._before = baseline.read(self._baseline)
        self._measured: baseline.Figures = {}
        self._passed: set[str] = set()
        self._changes: list[baseline.Change] = []
        self._written: int | None = None
        self._problem: str | None = None

    def _memray(self) -> bool:
        return self._plugins.hasplugin("memray_manager")  # it may be configured after this

    def check(self, item: pytest.Item) -> None:
        """Raises ``ValueError`` for an invalid marker."""
        limits_of(item, self._memray())
        allowed_of(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        limits = limits_of(item, self._memray())
        allowed = allowed_of(item)
        before = living() if allowed is not None else None
        sites = CallSites()
        if limits:
            sites.start()
        meter = Meter()
        meter.start()
        try:
            result = yield
        finally:
            figures = item.stash[_FIGURES] = meter.stop()
            over = exceeded(limits, figures)
            held = sites.stop([each.device for each in over])
        if over:
            pytest.fail("\n".join(line for each in over for line in (each.text, *held.get(each.device, []))), pytrace=False)
        for line in unchecked(limits, figures):
            warnings.warn(pytest.PytestWarning(line), stacklevel=1)
        message = leaked(before, living(), allowed or 0) if before is not None else None
        if message is not None:
            pytest.fail(message, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "call" and _FIGURES in item.stash:
            setattr(report, _ATTRIBUTE, item.stash[_FIGURES])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        figures = getattr(report, _ATTRIBUTE, None)
        if figures is not None:
            self._measured[report.nodeid] = figures
            (self._passed.add if report.passed else self._passed.discard)(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_worker or self._baseline is None:
            return
        passed = {test: figures for test, figures in self._measured.items() if test in self._passed}
        self._changes = baseline.compare(self._before, passed, self._fail_over)
        if self._update:
            try:
                self._written = baseline.write(self._baseline, self._before, passed)
            except OSError as error:
                self._problem = f"cannot be written: {error}"
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
        elif any(change.fails for change in self._changes) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._table:
            self._print_table(terminalreporter)
        if self._baseline is not None:
            self._print_baseline(terminalreporter)

    def _print_table(self, terminal: Any) -> None:
        terminal.section("tidemark: peak memory by test, above its start", sep="=")
        devices = sorted({device for figures in self._measured.values() for device in figures if device != RSS})
        if not devices:
            terminal.line("no CUDA device was used: RSS is the growth of the whole process's resident memory")
        columns = [*devices, RSS]
        terminal.line("  ".join([f"{name.upper() if name == RSS else name:>10}" for name in columns] + ["test"]))

        def size(test: str) -> tuple[int, ...]:
            figures = self._measured[test]
            return (max((figures.get(name, 0) for name in devices), default=0), figures.get(RSS, 0))

        ordered = sorted(self._measured, key=lambda test: (*(-part for part in size(test)), test))
        shown = ordered[: self._top] if self._top else ordered
        for test in shown:
            figures = self._measured[test]
            cells = [bytes_text(figures[name]) if name in figures else "n/a" for name in columns]
            terminal.line("  ".join([f"{cell:>10}" for cell in cells] + [_printable(test)]))
        if len(shown) < len(ordered):
            terminal.line(f"({len(ordered) - len(shown)} more tests; --tidemark-top 0 shows all)")

    def _print_baseline(self, terminal: Any) -> None:
        terminal.section(f"tidemark: compared with {self._baseline}", sep="=")
        for change in self._changes:
            terminal.line(f"{'FAILED ' if change.fails and not self._update else ''}{_printable(str(change))}")
        exact = [test for test, figures in self._measured.items() if set(figures) - {RSS}]
        if self._problem is not None:
            terminal.line(f"ERROR: {self._baseline}: {self._problem}", red=True)
        elif not exact:
            terminal.line("nothing to compare: no CUDA device was used (without a GPU: tidemark plan --steps 0 -- pytest …)")
        elif self._written is not None:
            terminal.line(f"written: {self._written} tests")
        else:
            known = sum(1 for test in exact if test in self._before)
            terminal.line(f"{known} tests compared, {len(self._changes)} changed, {len(exact) - known} not in the baseline")
