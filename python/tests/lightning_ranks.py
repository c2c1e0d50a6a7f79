"""One rank of a Lightning job with DDP whose batch size is searched: each has room for another number of samples."""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.plugins.environments import LightningEnvironment

from tidemark.integrations.lightning import BatchSizeCallback

MOST = (100, 40)  # samples, of each rank


class Model(LightningModule):  # type: ignore[misc,unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.layer = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        self.batch_size = 2
        self.sizes: list[int] = []
        self.before: Any = None

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(torch.ones(300, 4), batch_size=self.batch_size, shuffle=True)

    def training_step(self, batch: Any, index: int) -> Any:
        self.sizes.append(len(batch))
        if len(batch) > MOST[self.global_rank]:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        loss = self.layer(batch + len(self.sizes)).square().mean()
        self.log("loss", loss, sync_dist=True)
        return loss

    def on_fit_start(self) -> None:  # after that of callbacks
        self.searched = len(self.sizes)
        self.after = [value.flatten().tolist() for value in self.layer.state_dict().values()]

    def configure_optimizers(self) -> Any:
        self.before = [value.flatten().tolist() for value in self.layer.state_dict().values()]
        return torch.optim.Adam(self.parameters(), lr=0.1)


def main() -> None:
    rank = int(os.environ["RANK"])
    os.environ["LOCAL_RANK"] = str(rank)
    search = BatchSizeCallback(max_val=64, max_probes=20)
    trainer = Trainer(
        accelerator="cpu",
        devices=int(os.environ["WORLD_SIZE"]),
        strategy="ddp",
        max_epochs=1,
        limit_train_batches=2,
        callbacks=[search],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        plugins=[LightningEnvironment()],
    )
    model = Model()
    trainer.fit(model)
    assert search.found is not None
    told = {
        "found": search.optimal_batch_size,
        "tried": [probe.batch_size for probe in search.found.probes],
        "searched": model.sizes[: model.searched],
        "trained": model.sizes[model.searched :],
        "as_before": model.after == model.before,
        "logs": "log" in vars(model),
        "states": len(trainer.optimizers[0].state),
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
