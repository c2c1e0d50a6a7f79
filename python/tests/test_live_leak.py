"""`tidemark leak --enable-tracking` on a program that leaks through a list and through losses that keep their graphs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from recordings import MIB

from tidemark._program import find_program

pytest.importorskip("torch")

# Linear(512, 512) on 512 rows: its output, which the loss's graph keeps, is 1 MiB.
PROGRAM = """
import os, select, torch, tidemark
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses, kept = [], []

def forward():
    return model(torch.randn(512, 512)).square().mean()

def train():
    optimizer.zero_grad()
    forward().backward()
    optimizer.step()

def remember():
    kept.append(torch.empty(2 << 20, dtype=torch.uint8))

while True:
    while not select.select([0], [], [], 0.02)[0]:
        torch.empty(1)  # questions are answered once the program allocates
    os.read(0, 1)  # one step for each byte: it leaks no more than the test asks for, however busy the machine is
    with tidemark.step():
        train()
        remember()  # behind the next forward pass, which nothing ends, it might be of that
        losses.append(forward())
    print("step", flush=True)
"""
STEPS = 40  # between the first answer of the program and the report
FREE_STEPS = 100  # before the first answer, at full speed; further ones once a second


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("leak")
    sockets = folder / "sockets"
    sockets.mkdir()
    environment = {**os.environ, "TIDEMARK_RUNTIME_DIR": str(sockets)}
    (folder / "leaky.py").write_text(PROGRAM)
    command = [find_program(), "run", "-o", str(folder / "run.tide"), "--", sys.executable, str(folder / "leaky.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as recorder:
        assert recorder.stdin is not None and recorder.stdout is not None
        read, ask = recorder.stdout.readline, recorder.stdin

        def step() -> None:
            ask.write(".")
            ask.flush()
            assert read() == "step\n"

        try:
            step()
            leak = [find_program(), "leak", "--enable-tracking", "--interval", "0.2", "--pid", str(recorder.pid)]
            watch = [*leak, "--output", str(folder / "leak.json")]
            with subprocess.Popen(
                watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
            ) as watching:
                left, free = STEPS, FREE_STEPS
                while left > 0:
                    step()
                    if list(sockets.glob("tidemark-*/objects.*.answer")):
                        left -= 1
                    elif free > 0:
                        free -= 1
                    else:
                        time.sleep(1)
                watching.send_signal(signal.SIGINT)
                text, errors = watching.communicate()
            assert (watching.returncode, errors.startswith("tidemark: wrote ")) == (0, True)
        finally:
            os.killpg(recorder.pid, signal.SIGKILL)
    found: dict[str, Any] = json.loads((folder / "leak.json").read_text())
    found["text"] = text
    return found


def functions(stack: dict[str, Any]) -> list[str]:
    return [frame["function"] for frame in stack["frames"]]


def test_stacks_and_modules_that_grow(report: dict[str, Any]) -> None:
    (source,) = report["tracking"]["sources"]
    rows = source["by_stack"]
    kept = next(row for row in rows if functions(row["stack"])[-1] == "remember")
    assert kept["growth_bytes_per_step"] == 2 * MIB
    assert sum(row["growth_bytes_per_step"] for row in rows if "forward" in functions(row["stack"])) >= MIB
    modules = {row["module"]: row["growth_bytes_per_step"] for row in source["by_module"]}
    assert modules["0"] >= MIB
    assert modules[None] >= 2 * MIB


def test_mistakes_and_who_holds_what_leaks(report: dict[str, Any]) -> None:
    (source,) = report["tracking"]["sources"]
    assert source["leaks"]["verdict"] == "leak"
    mistakes = {(group["mistake"]["name"], group["mistake"]["confidence"]) for group in source["leaks"]["groups"]}
    assert mistakes == {("losses_with_graph", "exact"), ("growing_container", "exact")}
    assert source["object_types_unknown_because"] is None
    assert source["new_storages"]["count"] > 20
    types = {(row["kind"], row["type"]): row for row in source["object_types"]}
    kept = {holder["name"]: holder for holder in types["tensor", "Tensor"]["holders"]}["__main__.kept"]
    assert kept["chain"].startswith("__main__.kept[") and kept["storage_count"] > 1
    assert any(holder["name"] == "__main__.losses" for row in source["object_types"] for holder in row["holders"])
    assert "a list or dictionary only grows" in report["text"]
    assert "losses are kept with their autograd graphs" in report["text"]


def test_a_program_is_started_recorded_and_watched_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(
        """
import sys, torch
kept = []
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for _ in range(60):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    kept.append(torch.ones(1 << 16))
print("trained with", sys.argv[1])
raise SystemExit(3)
"""
    )
    command = [find_program(), "leak", "--enable-tracking", "-o", "leak.json", "--", sys.executable, "leaky.py", "--steps"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "trained with --steps\n" in done.stdout and "Leak: 1 call site grows by 256.0 KiB per step" in done.stdout
    assert json.loads((tmp_path / "leak.json").read_text())["ended_by"] == "process_ended"
    assert len(list(tmp_path.glob("leaky-*.tide"))) == 1
    refused = subprocess.run([*command[:2], "--duration", "5", *command[5:]], text=True, capture_output=True, timeout=60)
    assert refused.returncode == 2 and "--duration: a PROGRAM is watched from its start to its end" in refused.stderr
