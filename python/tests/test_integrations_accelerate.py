"""A real Accelerator: what the tracker receives, keeps and passes on."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_marks import marks

pytest.importorskip("torch")
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
