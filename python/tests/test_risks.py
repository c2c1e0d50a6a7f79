"""Callbacks for memory that runs out, in a separate program: it forks nothing and needs no torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import logging, os, sys, threading, tidemark
told = threading.Event()
seen = []
def tell(change):
    seen.append((change["device"], change["before"], change["risk_assessment"]["risk_level"], threading.current_thread().name))
    told.set()
    raise RuntimeError("a callback's own fault")
# Any use is above a threshold of almost nothing.
with tidemark.on_risk("medium", tell, devices=["cpu"], interval=0.02, threshold=0.001) as watch:
    assert told.wait(60)
    threading.Event().wait(0.2)
print(seen)
assert "torch" not in sys.modules
tidemark.on_risk("high", print, interval=0.02)  # is left to the end of the program
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ))


def test_a_rise_is_told_once_on_a_thread_of_its_own():
    ended = run(PROGRAM)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "[('cpu', 'low', 'medium', 'tidemark-risks')]\n"
    assert "on_risk: the callback failed" in ended.stderr
    assert "a callback's own fault" in ended.stderr


def test_a_callback_may_stop_it_and_devices_that_are_not_there_are_said():
    ended = run(
        "import threading, tidemark\n"
        "stopped = threading.Event()\n"
        "watch = tidemark.on_risk('medium', lambda change: (watch.stop(), stopped.set()), interval=0.02, threshold=0.001)\n"
        "assert stopped.wait(60)\n"
        "watch = tidemark.on_risk('medium', print, devices=[77], interval=0.02)\n"
        "watch._thread.join(60)\n"
    )
    assert ended.returncode == 0, ended.stderr
    assert "there is no device 77 here" in ended.stderr


@pytest.mark.parametrize("arguments", [{"level": "low"}, {"interval": 0}, {"interval": float("nan")}, {"threshold": 101}])
def test_what_cannot_be_is_refused(arguments):
    import tidemark

    with pytest.raises(ValueError, match=next(iter(arguments))):
        tidemark.on_risk(**{"level": "high", "function": print, **arguments})


def test_the_thread_is_not_in_children(tmp_path: Path):
    program = (
        "import os, threading, tidemark\n"
        "with tidemark.on_risk('high', print, interval=0.02):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(threading.active_count() - 1)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    ended = run(program)
    assert ended.returncode == 0, ended.stderr
