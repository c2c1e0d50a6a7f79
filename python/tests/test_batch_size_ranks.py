"""``auto_batch_size`` over the ranks of a job: real process groups, of which each rank has another limit."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import GPU_PYTHON, needs_gpu, on_gpu
from rank_programs import HERE, free_port, run_ranks

import tidemark

torch = pytest.importorskip("torch")

GIB = 1 << 30
OWN = ("slope_bytes", "intercept_bytes", "limit_bytes", "sizes")  # of each rank


@pytest.fixture(scope="module")
def ranks() -> list[dict[str, Any]]:
    """What each of two ranks found in each scene of batch_size_ranks.py."""
    return run_ranks("batch_size_ranks.py", 2)


def scene(ranks: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [rank[name] for rank in ranks]


def shared(found: dict[str, Any]) -> dict[str, Any]:
    probes = [{name: value for name, value in probe.items() if name != "peak_bytes"} for probe in found["probes"]]
    return {**{name: value for name, value in found.items() if name not in OWN}, "probes": probes}


@pytest.mark.parametrize("name", ["limits", "fails_on_one", "peaks", "one_is_first", "ddp"])
def test_all_ranks_find_the_same(name: str, ranks: Any) -> None:
    one, other = scene(ranks, name)
    assert shared(one) == shared(other)


def test_a_size_fits_if_it_fits_everywhere(ranks: Any) -> None:
    found, _ = scene(ranks, "limits")
    assert (found["batch_size"], found["does_not_fit"], found["ended"]) == (19, 21, "found"), "rank 1 has room for 20"
    for probe in found["probes"]:
        assert (probe["fits"], probe["rank"]) == ((True, None) if probe["batch_size"] <= 20 else (False, 1))
    assert scene(ranks, "fails_on_one")[0]["batch_size"] is None
    found, _ = scene(ranks, "ddp")
    assert 38 <= found["batch_size"] <= 40, "rank 1 has room for 40"


def test_peaks_of_the_rank_that_has_least_left(ranks: Any) -> None:
    """Rank 0 reaches 80 GiB at 156 samples, rank 1 its 40 GiB at 150: without an error, from the peaks."""
    one, other = scene(ranks, "peaks")
    assert 143 <= one["batch_size"] <= 150 and one["does_not_fit"] is None
    assert (one["slope_bytes"], one["intercept_bytes"]) == pytest.approx((GIB / 2, 2 * GIB))
    assert (other["slope_bytes"], other["intercept_bytes"]) == pytest.approx((GIB / 5, 10 * GIB), rel=1e-6)
    assert (one["limit_bytes"], other["limit_bytes"]) == (80 * GIB, 40 * GIB)
    assert one["sizes"] == other["sizes"]


def test_a_first_step_of_one_rank(ranks: Any) -> None:
    """It makes optimizer state there: the peak of no rank is used."""
    for found in scene(ranks, "one_is_first"):
        assert [probe["warmed_up"] for probe in found["probes"][:2]] == [False, True]
        assert 361 <= found["batch_size"] <= 380


def test_errors_of_one_rank_end_all(ranks: Any) -> None:
    one, other = scene(ranks, "error")
    assert one["error"] == "TidemarkError: auto_batch_size: rank 1 failed: its output has the error"
    assert other["error"] == "KeyError: 'labels'"
    assert all("all ranks have to call it with the same arguments" in found["error"] for found in scene(ranks, "arguments"))
    assert all("plan= is for one process" in found["error"] for found in scene(ranks, "planned"))


def test_a_rank_alone(ranks: Any) -> None:
    one, other = scene(ranks, "alone")
    assert 29 <= one["batch_size"] <= 30 and 19 <= other["batch_size"] <= 20


def test_trials_must_not_communicate(ranks: Any) -> None:
    assert all("communicates with other ranks" in found["error"] for found in scene(ranks, "communicates"))
    assert all("communicates with other ranks" in found["wrapped"] for found in scene(ranks, "ddp"))


def test_a_rank_that_waits_in_a_collective(ranks: Any) -> None:
    """The rank that ran out of memory says so after the time; the other one waits in the trial until the job's end."""
    error = ranks[1]["hangs"]["error"]
    assert "rank 1 at batch size 1 got no answer from all of 2 ranks in 2 s: each rank has to call auto_batch_size()" in error
    assert "must not communicate" in error


@needs_gpu
@pytest.mark.nightly
@pytest.mark.parametrize("groups", ["nccl", "cpu:gloo,cuda:nccl"])
def test_two_gpus(tmp_path: Path, groups: str) -> None:
    """PyTorch's counters of two devices: the one with less memory decides."""
    if not on_gpu() and torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    path = [str(HERE.parents[1] / "tests" / "startup"), str(Path(str(tidemark.__file__)).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "MASTER_PORT": free_port()}
    command = [*on_gpu("--gpu", "H100-80GB", "--devices", "2"), GPU_PYTHON, str(HERE / "batch_size_two_gpus.py"), groups]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False)
    found = [json.loads(line) for line in (ran.stdout + ran.stderr).splitlines() if line.startswith('{"rank"')]
    assert len(found) == 2, ran.stdout + ran.stderr
    one, other = sorted(found, key=lambda told: int(told["rank"]))
    assert one["sizes"] == other["sizes"] and one["together"]["batch_size"] == other["together"]["batch_size"]
    assert one["together"]["batch_size"] == pytest.approx(other["alone"]["batch_size"], rel=0.06)
    assert one["alone"]["batch_size"] > 1.8 * other["alone"]["batch_size"]
    assert one["together"]["limit_bytes"] > 1.9 * other["together"]["limit_bytes"]
    assert one["together"]["slope_bytes"] == pytest.approx(other["together"]["slope_bytes"], rel=0.02)
    assert one["reduced"] and other["reduced"]
