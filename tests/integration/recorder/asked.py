"""Executes the lines on its stdin, and prints a line after each: a program that gets requests for its objects meanwhile.

It does not have the package tidemark, and checks the state left by the answers.
"""

import gc
import importlib.util
import os
import random
import sys
import threading
import time
from pathlib import Path

import torch

assert importlib.util.find_spec("tidemark") is None
MIB = 1 << 20
losses = []
over = threading.Event()
ours = set()  # files whose functions a profiler of the program has seen, except the program's


class Late:
    """Allocates when the interpreter ends."""

    def __del__(self):
        work()


def work():
    torch.empty(64)


def keep():
    losses.append(torch.empty(MIB, dtype=torch.uint8))


def facts():
    """State that answers must not change."""
    names = sorted(name for name in sys.modules if "tidemark" in name)
    return names, sys.path == path, gc.isenabled(), sorted(ours)


def watch(frame, _event, _argument):
    if frame.f_code.co_filename.startswith("<tidemark>"):
        ours.add(frame.f_code.co_filename)


def work_in_thread():
    """Until there are no more lines."""

    def run():
        while not over.wait(0.001):
            work()

    threading.Thread(target=run).start()


def fork():
    """The child continues with the next lines, the parent waits for it."""
    child = os.fork()
    return os.getpid() if child == 0 else os.waitpid(child, 0)[1]


def end_while_asked(index):
    """In a child, which ends by itself some time after the request, before or after the answer."""
    work()
    folder = Path(os.environ["TIDEMARK_SOCKET"]).parent
    question = folder / f"objects.{os.getpid()}.new"
    question.write_text("again" if index % 2 else "first")
    question.rename(question.with_suffix(".question"))
    until = time.monotonic() + random.Random(index).random() / 8
    while time.monotonic() < until:
        work()
    sys.exit(7)


def ends():
    """The ends of children."""
    statuses = set()
    for index in range(5):
        child = os.fork()
        if child == 0:
            end_while_asked(index)
        statuses.add(os.waitpid(child, 0)[1])
    return sorted(map(os.waitstatus_to_exitcode, statuses))


if __name__ == "__main__":
    path = list(sys.path)
    late = Late()
    sys.setprofile(watch)
    for line in sys.stdin:
        said = {"work": work, "keep": keep, "facts": facts, "thread": work_in_thread, "fork": fork, "ends": ends}[
            line.strip()
        ]()
        print(said, flush=True)
    # A thread that returns to the interpreter from PyTorch's C++ after the interpreter has ended calls std::terminate.
    over.set()
