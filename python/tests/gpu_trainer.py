"""A tiny Llama in a Trainer; as a program, on a GPU: compares the scalars of the integrations with PyTorch's counters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments


def trainer(folder: Path, **options: Any) -> Any:
    """Two epochs of two steps; a log at each step."""
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16,
    )
    tokens = torch.arange(16).repeat(4, 1)
    data = [{"input_ids": row, "labels": row} for row in tokens]
    callbacks = options.pop("callbacks")
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=2,
        logging_steps=1,
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **{"report_to": [], "num_train_epochs": 2, **options},
    )
    return Trainer(LlamaForCausalLM(config), arguments, train_dataset=data, eval_dataset=data[:2], callbacks=callbacks)


class Compare(TrainerCallback):  # type: ignore[misc,unused-ignore]
    agreeing = 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "loss" in logs:
            counted = [torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]
            logged = [logs[f"memory/cuda:0/{name}_mib"] * 2**20 for name in ("peak", "allocated", "reserved")]
            self.agreeing += logged == counted and 0 < counted[1] < counted[0] <= counted[2]


def main() -> None:
    from accelerate import Accelerator

    from tidemark.integrations.accelerate import TidemarkTracker
    from tidemark.integrations.transformers import TidemarkCallback

    compare = Compare()
    trainer(Path(sys.argv[1]), callbacks=[TidemarkCallback(), compare], max_grad_norm=0.0).train()
    print(f"{compare.agreeing} logs agree with PyTorch's counters")

    accelerator = Accelerator(log_with=TidemarkTracker())
    accelerator.init_trackers("test")
    held = torch.zeros(1 << 20, device=accelerator.device)
    accelerator.log({"loss": 1.0}, step=7)
    ((step, scalars),) = accelerator.get_tracker("tidemark", unwrap=True)
    if step == 7 and scalars["memory/cuda:0/allocated_mib"] * 2**20 == torch.cuda.memory_allocated() >= held.numel() * 4:
        print("tracker agrees with PyTorch's counters")


if __name__ == "__main__":
    main()
