"""A real Accelerator: what the tracker receives, keeps and passes on."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_marks import marks

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")


def test_a_tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate import Accelerator

    from tidemark.integrations.accelerate import TidemarkTracker

    told = marks(monkeypatch)
    written: list[Any] = []
    tracker = TidemarkTracker(writer=lambda scalars, step: written.append((step, scalars)))
    accelerator = Accelerator(cpu=True, log_with=tracker)
    accelerator.init_trackers("test", config={"lr": 0.1})
    accelerator.log({"loss": 1.0}, step=5)
    accelerator.log({"loss": 0.5})
    accelerator.end_training()
    assert told == ["log 5", "log 1", "training ended"]
    assert [step for step, _ in written] == [5, 1] and written[0][1]["memory/rss_mib"] > 1
    assert accelerator.get_tracker("tidemark", unwrap=True) == written


def test_a_batch_size_for_all_ranks() -> None:
    from tidemark.integrations.accelerate import find_executable_batch_size

    tried: list[int] = []

    def trial(batch_size: int, largest: int) -> None:
        tried.append(batch_size)
        if batch_size > largest:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    @find_executable_batch_size(trial, starting_batch_size=64, max_probes=20, device="cpu")
    def train(batch_size: int, largest: int) -> tuple[int, int]:
        """Trains."""
        return batch_size, largest

    size, largest = train(40)
    assert 38 <= size <= 40 == largest and max(tried) == 64
    assert train.__doc__ == "Trains."
    assert train(1000)[0] == 64
    with pytest.raises(RuntimeError, match="No executable batch size found"):
        train(0)
