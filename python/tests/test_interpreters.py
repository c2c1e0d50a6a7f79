"""Subinterpreters and forked children: the extension modules in them, and the state that a process shares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from recordings import read, script

SNAPSHOT = Path(__file__).parents[2] / "tests" / "data" / "snapshots" / "default.pickle.xz"
#: Another interpreter of the process; from CPython 3.12 on it has a GIL of its own.
IN_SUBINTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = sys.argv[1].replace("ARGUMENTS", repr(sys.argv[2:]))
def run():
    number = interpreters.create()
    failed = interpreters.run_string(number, code)
    assert not failed, failed
    interpreters.destroy(number)
"""
USE = """
import os, tidemark
snapshot, recording = ARGUMENTS
tidemark.mark("unheard")
with tidemark.step(), tidemark.range("unheard"):
    pass
device = next(each for each in tidemark.read(snapshot).summary().devices if each.device == "cuda:0")
os.write(1, b"%d\\n" % device.peak_allocated_bytes)
"""
RECORD = """
import os, tidemark
snapshot, recording = ARGUMENTS
try:
    with tidemark.record(recording, samples=False):
        tidemark.mark("inside")
except tidemark.TidemarkError as error:
    os.write(1, f"{error}\\n".encode())
"""


def truth() -> str:
    peak = json.loads(Path(str(SNAPSHOT).replace(".pickle.xz", ".truth.json")).read_text())["peak"]
    return str(peak["allocated_bytes"])


def test_interpreters_one_after_the_other_and_the_main_one(tmp_path: Path) -> None:
    everywhere = IN_SUBINTERPRETERS + "run(); run(); exec(code); run(); exec(code)"
    done = script(everywhere, USE, SNAPSHOT, tmp_path / "run.tide")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [truth()] * 5


def test_interpreters_at_the_same_time(tmp_path: Path) -> None:
    threads = """
import threading
running = [threading.Thread(target=run) for _ in range(3)]
for thread in running: thread.start()
for thread in running: thread.join()
"""
    done = script(IN_SUBINTERPRETERS + threads, USE, SNAPSHOT, tmp_path / "run.tide")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [truth()] * 3


def test_recording_from_a_subinterpreter(tmp_path: Path) -> None:
    path = tmp_path / "run.tide"
    done = script(IN_SUBINTERPRETERS + "run()", RECORD, SNAPSHOT, path)
    assert (done.returncode, done.stderr) == (0, "")
    if sys.version_info >= (3, 12):
        assert done.stdout == ""
        assert read(path)["data_quality"]["complete"]
    else:  # older versions do not let a subinterpreter start another program
        assert done.stdout == "the recorder cannot be started: subprocess not supported for isolated subinterpreters\n"
        assert not path.exists()


def test_a_child_that_is_forked_after_the_engine_has_read() -> None:
    code = """
import os, sys, tidemark
def peak():
    devices = tidemark.read(sys.argv[1]).summary().devices
    return next(each for each in devices if each.device == "cuda:0").peak_allocated_bytes
os.write(1, b"%d\\n" % peak())
child = os.fork()
tidemark.mark("unheard")
os.write(1, b"%d\\n" % peak())
if child == 0:
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""
    done = script(code, SNAPSHOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [truth()] * 3
