"""Notebooks and IPython: ``%load_ext tidemark`` adds the cell magic ``%%tidemark``, and recordings name cells ``In[3]``."""

from __future__ import annotations

import argparse
import ast
import atexit
import inspect
import os
import shlex
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, Callable

from tidemark import _recorder
from tidemark._errors import TidemarkError
from tidemark.notebook_output import RecordedCell
from tidemark.recording import Recording, on_load, record


class _Cells:
    """Names the cells in recordings: IPython compiles them under names of temporary files."""

    def __init__(self, shell: Any) -> None:
        self._compiler = shell.compile
        self._instances = self._compiler.__dict__.get("cache")  # from another extension that replaces it
        self._cache: Callable[..., str] = self._compiler.cache
        self._names: dict[str, str] = {}
        self.latest = 0  #: number of the running cell; IPython counts before or after, depending on its version
        for path, number in getattr(self._compiler, "_filename_map", {}).items():
            self._name(path, number)
        self._compiler.cache = self._name_new
        on_load(self._tell_all)

    def restore(self) -> None:
        if self._compiler.__dict__.get("cache") != self._name_new:
            return  # another extension replaced this one, and calls it
        if self._instances is None:
            del self._compiler.cache
        else:
            self._compiler.cache = self._instances

    def _name_new(self, transformed_code: str, number: int = 0, *others: Any, **options: Any) -> str:
        """``CachingCompiler.cache()``, which IPython calls for each cell before it compiles it."""
        path = self._cache(transformed_code, number, *others, **options)
        self.latest = number
        self._name(path, number)
        return path

    def _name(self, path: str, number: int) -> None:
        name = f"In[{number}]"
        if number > 0 and self._names.get(path) != name:
            self._names[path] = name
            _recorder.name_file(path, name)

    def _tell_all(self) -> None:
        for path, name in self._names.items():
            _recorder.name_file(path, name)


class _Arguments(argparse.ArgumentParser):
    """Options of the magic, the same as those of ``tidemark run``."""

    def __init__(self) -> None:
        super().__init__("%%tidemark", description="Record what this cell does with tensor memory.", add_help=False)
        self.add_argument("-o", "--output", help="keep the recording in this file")
        self.add_argument("-f", "--force", action="store_true", help="replace an existing recording")
        self.add_argument("--stacks", default="python", choices=("none", "python", "native", "both"))
        self.add_argument("--attribute", default="on", choices=("on", "off"))
        self.add_argument("--sample-interval", default=None, metavar="TIME")
        self.add_argument("--no-samples", action="store_true")
        self.add_argument("--max-size", default=None, metavar="SIZE")
        self.add_argument("-q", "--quiet", action="store_true", help="show nothing")

    def error(self, message: str) -> Any:
        raise TidemarkError(f"{message}; {self.format_usage().strip()}")


class _Magic:
    def __init__(self, shell: Any, cells: _Cells) -> None:
        self._shell = shell
        self._cells = cells
        self._folder: Path | None = None  # folder of temporary recordings
        self._count = 0

    def __call__(self, line: str, cell: str) -> object:
        """Record this cell and show its memory over time, the memory held at the peak, and the allocating lines.

        ``%%tidemark [-o FILE] [-f] [-q] [--stacks ...] [--attribute on|off] [--sample-interval TIME] [--no-samples] [--max-size
        SIZE]``
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise TidemarkError(f"%%tidemark {line}: {error}") from error
        options = _Arguments().parse_args(words)
        code, last = self._compile(cell)
        recording = record(
            options.output or self._temporary(),
            stacks=options.stacks,
            attribute=options.attribute == "on",
            sample_interval=options.sample_interval,
            samples=not options.no_samples,
            max_size=options.max_size,
            force=options.force,
        )
        recording.start()
        try:
            exec(code, self._shell.user_ns)
            return eval(last, self._shell.user_ns) if last is not None else None
        finally:  # if the recording fails, the cell still ends as it would without it
            try:
                recording.stop()
                if not options.quiet:
                    self._show(recording)
            except TidemarkError as problem:
                warnings.warn(str(problem), stacklevel=2)

    def _compile(self, cell: str) -> tuple[Any, Any]:
        """The cell's statements, and its last expression if it ends with one; with their line numbers in the notebook."""
        shell = self._shell
        source = cell if cell.startswith("%%") else f"# the line of the magic\n{cell}"
        transformed = shell.transform_cell(source)
        path = shell.compile.cache(transformed, self._cells.latest, source)
        tree = shell.transform_ast(shell.compile.ast_parse(transformed, filename=path))
        last = None
        if (
            compile(tree, path, "exec", shell.compile.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True).co_flags
            & inspect.CO_COROUTINE
        ):
            raise TidemarkError("%%tidemark cannot await: use `with tidemark.record(path):` in the cell")
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not transformed.rstrip().endswith(";"):
            last = compile(ast.Expression(tree.body.pop().value), path, "eval", shell.compile.flags, True)
        return compile(tree, path, "exec", shell.compile.flags, True), last

    def _temporary(self) -> str:
        if self._folder is None or not self._folder.is_dir():  # it may have been deleted in a long session
            self._folder = Path(tempfile.mkdtemp(prefix="tidemark-cells-"))
            atexit.register(_remove, self._folder, os.getpid())
        self._count += 1
        return str(self._folder / f"cell-{self._cells.latest}-{self._count}.tide")

    def _show(self, recording: Recording) -> None:
        from IPython.display import display

        if recording.files:
            display(RecordedCell(recording.files[0].path, in_process=True))  # type: ignore[no-untyped-call, unused-ignore]


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a process forked by a cell
        shutil.rmtree(folder, ignore_errors=True)


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext tidemark``: adds ``%%tidemark``, and recordings name cells ``In[3]``."""
    unload_ipython_extension(shell)  # if it is called twice
    shell.tidemark_cells = cells = _Cells(shell)
    shell.register_magic_function(_Magic(shell, cells), "cell", "tidemark")


def unload_ipython_extension(shell: Any) -> None:
    """Called by ``%unload_ext tidemark``: restores the previous state."""
    cells = shell.__dict__.pop("tidemark_cells", None)
    if cells is not None:
        cells.restore()
    shell.magics_manager.magics["cell"].pop("tidemark", None)
