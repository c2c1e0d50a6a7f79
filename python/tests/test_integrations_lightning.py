"""A real Lightning Trainer: marks, and memory in its loggers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_marks import marks

pytest.importorskip("lightning")
pytest.importorskip("tensorboard")
torch = pytest.importorskip("torch")


def test_a_lightning_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.loggers import TensorBoardLogger
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from tidemark.integrations.lightning import TidemarkCallback

    class Model(LightningModule):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            return self.layer(batch).square().mean()

        def validation_step(self, batch: Any, index: int) -> None:
            self.layer(batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    told = marks(monkeypatch)
    loader = torch.utils.data.DataLoader(torch.ones(4, 4), batch_size=1)
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=2,
        logger=TensorBoardLogger(tmp_path),
        callbacks=[TidemarkCallback()],
        log_every_n_steps=2,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Model(), loader, loader)
    epoch = [*["step {", "} step"] * 4, "validation {", "} validation"]
    assert told == ["epoch 0", *epoch, "epoch 1", *epoch]
    (file,) = tmp_path.rglob("events.*")
    events = EventAccumulator(str(file))
    events.Reload()
    written = events.Scalars("memory/rss_mib")
    assert [each.step for each in written] == [2, 4, 6, 8] and all(each.value > 1 for each in written)
