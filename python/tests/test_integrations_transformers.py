"""A real Trainer with a tiny model: marks, and memory in the output of its reporters; on the CPU and on a GPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from gpu_programs import GPU_PYTHON, needs_gpu, on_gpu
from recorded_marks import marks
from scripted_device import ScriptedDevice

pytest.importorskip("transformers")
pytest.importorskip("torch")
pytest.importorskip("accelerate")


def test_a_trainer_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    from gpu_trainer import trainer
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from tidemark.integrations.transformers import TidemarkCallback

    told = marks(monkeypatch)
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "logs"))
    training = trainer(tmp_path, callbacks=[TidemarkCallback()], report_to=["tensorboard"], use_cpu=True, eval_strategy="epoch")
    training.train()
    step = ["step {", "} step"]
    assert told == [
        *("training", "epoch 0", *step * 2, "evaluation {", "} evaluation"),
        *("epoch 1", *step * 2, "evaluation {", "} evaluation"),
        "training ended",
    ]
    logged = [each["memory/rss_mib"] for each in training.state.log_history]
    assert all(value > 1 for value in logged) and len(logged) == 4 + 2 + 1
    (file,) = (tmp_path / "logs").rglob("events.*")
    events = EventAccumulator(str(file))
    events.Reload()
    written = events.Scalars("train/memory/rss_mib")
    assert [each.value for each in written] == [pytest.approx(value) for value in logged]


@pytest.mark.parametrize("sums", [True, False])
def test_a_guarded_trainer(tmp_path: Path, sums: bool) -> None:
    """Parts of batches give the same parameters, with sums over tokens and with means over samples, and accumulated steps."""
    import torch
    from gpu_trainer import trainer

    from tidemark.integrations.transformers import guard_trainer

    parameters = []
    for guards in (False, True):
        torch.manual_seed(2)
        accumulated = {"gradient_accumulation_steps": 2, "num_train_epochs": 4}
        training = trainer(
            tmp_path, callbacks=[], use_cpu=True, max_grad_norm=0.0, optim="sgd", learning_rate=0.1, **accumulated
        )
        training.model.double()
        training.model_accepts_loss_kwargs = sums
        if guards:
            guarded = guard_trainer(training, memory=ScriptedDevice(500, 1000, steady=True))
        training.train()
        parameters.append(list(training.model.parameters()))
    assert guarded.guard is not None and guarded.guard.counts == {"run": 1, "split": 7, "skip": 0, "stop": 0}
    for one, other in zip(*parameters):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@needs_gpu
def test_a_trainer_on_a_gpu(tmp_path: Path) -> None:
    import tidemark

    here = Path(__file__).parent
    path = os.pathsep.join([str(Path(str(tidemark.__file__)).parents[1]), str(here), os.environ.get("PYTHONPATH", "")])
    plan = on_gpu("--gpu", "L4", "-o", "plan.tide")
    program = [GPU_PYTHON, here / "gpu_trainer.py", tmp_path]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([*plan, *program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "4 logs agree with PyTorch's counters" in done.stdout, done.stdout + done.stderr
    assert "tracker agrees with PyTorch's counters" in done.stdout
