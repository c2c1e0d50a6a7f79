"""Tests of a model's memory, for tidemark's pytest plugin; without a GPU on a phantom one:

tidemark plan --gpu L4 --steps 0 -- python -m pytest --tidemark examples/test_memory.py
"""

import pytest
import torch
from torch import nn

cache = []


@pytest.fixture(scope="module")
def model():
    return nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()


@pytest.mark.limit_memory("600 MiB", device="cuda")
@pytest.mark.parametrize("batch", [1024, 8192])
def test_training_step_fits(model, batch):
    model(torch.ones(batch, 1024, device="cuda")).sum().backward()


@pytest.mark.no_leaks
def test_inference_keeps_nothing(model):
    with torch.no_grad():
        model(torch.ones(256, 1024, device="cuda"))


@pytest.mark.no_leaks
def test_metrics_keep_nothing(model):
    cache.append(model(torch.ones(256, 1024, device="cuda")).mean())
