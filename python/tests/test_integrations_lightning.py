"""A real Lightning Trainer: marks, and memory in its loggers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rank_programs import run_ranks
from recorded_marks import marks
from scripted_device import ScriptedDevice

import tidemark

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


@pytest.mark.parametrize("as_dict", [True, False])
def test_a_guarded_trainer(tmp_path: Path, as_dict: bool) -> None:
    """Parts of batches give the same parameters, with accumulated steps too; the module is as before afterwards."""
    from lightning.pytorch import LightningModule, Trainer

    from tidemark.integrations.lightning import StepGuardCallback

    class Model(LightningModule):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(4)
            self.layer = torch.nn.Linear(4, 3).double()
            self.sizes: list[int] = []

        def training_step(self, batch: Any, index: int) -> Any:
            self.sizes.append(len(batch))
            loss = self.layer(batch).square().mean()
            return {"loss": loss, "size": len(batch)} if as_dict else loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.arange(128.0).reshape(32, 4).double() / 50
    models = []
    for guard in ([], [StepGuardCallback(memory=ScriptedDevice(500, 1000, steady=True))]):
        options: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = Trainer(
            accelerator="cpu", max_epochs=2, callbacks=guard, accumulate_grad_batches=2, enable_checkpointing=False, **options
        )
        models.append(Model())
        trainer.fit(models[-1], torch.utils.data.DataLoader(data, batch_size=4))
    assert models[0].sizes == [4] * 16 and models[1].sizes == [4] + [1] * 60
    assert guard[0].guard is not None and guard[0].guard.law.shapes == 2
    assert "training_step" not in vars(models[1])
    for one, other in zip(models[0].parameters(), models[1].parameters()):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_ranks_find_one_batch_size() -> None:
    """Real DDP of two ranks, which run out of memory at 100 and at 40 samples."""
    one, other = run_ranks("lightning_ranks.py", 2, compiles=True)
    for told in (one, other):
        assert 38 <= told["found"] <= 40
        assert told["tried"] == told["searched"] and max(told["tried"]) == 64
        assert told["trained"] == [told["found"]] * 2
        assert told["as_before"] and not told["logs"]
        assert told["states"] == 4, "of the training alone"
    assert one["tried"] == other["tried"]


def test_a_batch_size_that_cannot_be_searched() -> None:
    from lightning.pytorch import LightningModule, Trainer

    from tidemark.integrations.lightning import BatchSizeCallback

    class Model(LightningModule):  # type: ignore[misc,unused-ignore]
        def __init__(self, has_size: bool) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
            if has_size:
                self.batch_size = 1

        def train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(torch.ones(8, 4))

        def training_step(self, batch: Any, index: int) -> Any:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def fit(model: Any, *loaders: Any) -> None:
        options: Any = {
            "logger": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "enable_checkpointing": False,
        }
        Trainer(accelerator="cpu", max_epochs=1, callbacks=[BatchSizeCallback()], **options).fit(model, *loaders)

    with pytest.raises(tidemark.TidemarkError, match="neither the module nor the data module has batch_size"):
        fit(Model(False))
    with pytest.raises(tidemark.TidemarkError, match="has to come from train_dataloader"):
        fit(Model(True), torch.utils.data.DataLoader(torch.ones(8, 4)))
    model = Model(True)
    with pytest.raises(tidemark.TidemarkError, match="not even the smallest batch fits"):
        fit(model)
    assert model.batch_size == 1
