"""``%%tidemark`` in real notebooks, executed by a kernel."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from recordings import MIB, cpu, read, script

import tidemark
from tidemark.notebook_output import RecordedCell

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("torch")


def execute(cells: list[str], folder: Path) -> list[Any]:
    """The code cells of the example and these, with their outputs; failing cells do not end it."""
    notebook = nbformat.read(EXAMPLE, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(cell) for cell in cells]
    client = nbclient.NotebookClient(notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(folder)}})
    client.execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def rich(cell: Any) -> str:
    """The HTML of a cell's output."""
    return "".join(output["data"].get("text/html", "") for output in cell.outputs if output.output_type == "display_data")


def printed(cell: Any) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def labels(summary: dict[str, Any]) -> dict[str, int]:
    return {site["stack"]["label"]: site["bytes"] for site in cpu(summary)["call_sites_at_peak"]}


def test_a_leak_and_its_fix_come_first(tmp_path: Path) -> None:
    code = """
import torch
with __import__("tidemark").record(RUN):
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    kept = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(torch.ones(16, 64)).sum()
        loss.backward()
        optimizer.step()
        kept.append(torch.ones(4096))
"""
    path = tmp_path / "leak.tide"
    done = script(code.replace("RUN", repr(str(path))), path)
    assert done.returncode == 0, done.stderr
    html = RecordedCell(str(path))._repr_html_()
    assert html.startswith("<pre>Leak: 1 call site grows by 16.0 KiB per step") and "Fix: " in html.split("</pre>")[0]


def test_what_holds_a_leak_is_named_in_its_process() -> None:
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in ("import torch, collections", "%load_ext tidemark", '''%%tidemark
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
history = collections.deque()
for _ in range(40):
    optimizer.zero_grad()
    out = model(torch.ones(512, 64))
    out.sum().backward()
    optimizer.step()
    history.append(out)
'''):
    shell.run_cell(cell, store_history=True)
"""
    done = script(code)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Leak: 1 call site grows by 128.0 KiB per step" and "In[3]:7" in lines[1]
    assert lines[3] == "  held by __main__.history (5.0 MiB in 40 tensors)"


# The example's: In[3] has 3 x 4 MiB from line 3 of In[2], and 16 MiB of its own on its line 3.
EXAMPLE = Path(__file__).parents[2] / "examples" / "recording.ipynb"
CELLS = [
    # In[4]
    "%%tidemark -q\nlost = torch.empty(1 << 20)\n\nraise KeyError('of the user')",
    # In[5]
    "import json, tidemark\nprint(tidemark.is_recording())",
    # In[6]
    "recording = tidemark.start('later.tide', samples=False)",
    # In[7]
    "later = torch.empty(2 << 20, dtype=torch.float32)",
    # In[8]
    "print(json.dumps(tidemark.stop()))",
    # In[9]
    "%unload_ext tidemark\nprint(get_ipython().find_cell_magic('tidemark'))",
]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path]:
    folder = tmp_path_factory.mktemp("notebook")
    return execute(CELLS, folder), folder


def test_a_cell_shows_its_peak_and_the_lines_of_cells(notebook: tuple[list[Any], Path]) -> None:
    cells, folder = notebook
    shown = rich(cells[2])
    figure = re.search(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", shown)
    assert figure is not None and b"<svg" in base64.b64decode(figure[1])
    assert f"peak 28.0 MiB ({28 * MIB:,} bytes)" in shown
    assert "In[3]:3" in shown and "In[2]:3" in shown
    assert "ipykernel_" not in shown
    assert cells[2].outputs[-1].data["text/plain"] == str(4 << 20)  # the value of the last expression
    summary = read(folder / "run.tide")
    assert cpu(summary)["peak_allocated_bytes"] == 28 * MIB
    by_bytes = {count: label for label, count in labels(summary).items()}
    assert "In[2]:3" in by_bytes[12 * MIB] and "In[3]:3" in by_bytes[16 * MIB]


def test_an_exception_of_the_cell_is_shown_as_ever_and_the_recording_has_ended(notebook: tuple[list[Any], Path]) -> None:
    cells, _ = notebook
    failed = cells[3].outputs[-1]
    assert (failed.output_type, failed.ename) == ("error", "KeyError")
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(failed.traceback))
    assert "Cell In[4], line 4" in trace and "----> 4 raise KeyError" in trace
    assert printed(cells[4]) == "False\n"


def test_cells_are_named_where_a_recording_spans_several(notebook: tuple[list[Any], Path]) -> None:
    cells, folder = notebook
    assert json.loads(printed(cells[7])) == [str(folder / "later.tide")]
    found = labels(read(folder / "later.tide"))
    assert [count for label, count in found.items() if "In[7]:1" in label] == [8 * MIB]


def test_unloading_leaves_nothing(notebook: tuple[list[Any], Path]) -> None:
    cells, _ = notebook
    assert printed(cells[8]).strip() == "None"


def test_ipython_in_a_terminal(tmp_path: Path) -> None:
    """Its cell names are ``<ipython-input-...>``, and its output is text."""
    code = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in (
    "import torch, tidemark",
    "def make():\\n    return torch.empty(3 << 20, dtype=torch.uint8)",
    "%load_ext tidemark",
    f"%%tidemark -o {sys.argv[1]}\\nkept = make()",
    "print(In[4].count('get_ipython'), kept.nbytes)",
    "%%tidemark --stacks deep\\nunseen = 1",
    "print('unseen' in dir())",
):
    shell.run_cell(cell, store_history=True)
"""
    done = script(code, tmp_path / "run.tide")
    assert done.returncode == 0, done.stderr
    assert f"{3 * MIB}\n" in done.stdout and done.stdout.endswith("False\n")
    assert "make (In[2]:2)" in done.stdout
    assert "TidemarkError" in done.stdout + done.stderr and "invalid choice: 'deep'" in done.stdout + done.stderr
    (site,) = cpu(read(tmp_path / "run.tide"))["call_sites_at_peak"]
    assert [(frame["file"], frame["line"]) for frame in site["stack"]["frames"][-2:]] == [("In[4]", 2), ("In[2]", 2)]


def test_a_cell_ends_as_it_would_without_the_magic(tmp_path: Path) -> None:
    """Also if its recording fails; and a process forked by a cell leaves the notebook's files alone."""
    code = """
import warnings
from IPython.core.interactiveshell import InteractiveShell
warnings.simplefilter("ignore")
shell = InteractiveShell.instance()
shell.colors = "NoColor"
theirs = shell.compile.cache = lambda *words, cache=shell.compile.cache, **options: cache(*words, **options)
remove = "import glob, os, shutil\\nfor one in glob.glob(os.environ['TMPDIR'] + '/tidemark-cells-*'): shutil.rmtree(one)\\n"
for cell in (
    "import torch, tidemark, tidemark.notebook",
    "%load_ext tidemark",
    "tidemark.notebook.load_ipython_extension(get_ipython())",
    "%%tidemark\\n" + remove + "lost = torch.ones(30)\\n40 + 1",
    "%%tidemark\\n" + remove + "raise KeyError('of the user')",
    "%%tidemark -q\\n40 + 2",
    "%%tidemark -q\\ntidemark.stop()\\n40 + 3",
    "%%tidemark -q\\nimport asyncio\\nawait asyncio.sleep(0)",
    "%%tidemark -o '\\n1",
    "%%tidemark -q\\nimport atexit, os\\nfolder = tidemark.recording._current.path.rpartition('/')[0]\\n"
    "def leave(ends=atexit._run_exitfuncs, exit=os._exit):\\n    try: ends()\\n    finally: exit(0)\\n"
    "child = os.fork()\\nif child == 0: leave()\\n(os.waitpid(child, 0)[1], os.path.isdir(folder))",
    "%unload_ext tidemark",
):
    done = shell.run_cell(cell)
    print("cell:", done.result, repr(done.error_in_exec), flush=True)
print("cell:", shell.compile.cache is theirs)
"""
    done = script(code, environment={"TMPDIR": str(tmp_path)}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ended = [line[len("cell: ") :] for line in done.stdout.splitlines() if line.startswith("cell: ")]
    assert ended[:3] == ["None None"] * 3
    assert ended[3:7] == ["41 None", "None KeyError('of the user')", "42 None", "43 None"]
    assert ended[7].startswith("None TidemarkError('%%tidemark cannot await")
    assert ended[8] == 'None TidemarkError("%%tidemark -o \': No closing quotation")'
    assert ended[9:] == ["(0, True) None", "None None", "True"]


def test_names_are_no_markup(tmp_path: Path) -> None:
    """Names of a program's files, in notebook output."""
    name = "</script><img src=x onerror=alert(1)>"
    code = f"""
import sys, torch, tidemark
make = {{}}
exec(compile("def make():\\n    return torch.ones(1000)", {name!r}, "exec"), {{"torch": torch}}, make)
with tidemark.record(sys.argv[1]):
    kept = make["make"]()
"""
    assert script(code, tmp_path / "run.tide").returncode == 0
    run = tidemark.read(tmp_path / "run.tide")
    shown = [RecordedCell(str(tmp_path / "run.tide")), run.summary(), run.table(), run.tree()]
    for page in [one._repr_html_() for one in shown]:
        assert "onerror" in page and "<img src" not in page and "</script" not in page
