"""A small network compiled by torch.compile, forward and backward; PyTorch's counters as JSON."""

import json

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 10)).cuda()
compiled = torch.compile(model)
batch = torch.empty(64, 256, device="cuda")
for _ in range(3):
    compiled(batch).square().mean().backward()
kernels = torch._dynamo.utils.counters["inductor"]
print(
    json.dumps(
        {
            "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"],
            "fused": kernels["fxgraph_cache_miss"] + kernels["fxgraph_cache_hit"],
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
            "gradients": [parameter.grad is not None for parameter in model.parameters()],
        }
    )
)
