"""A small network compiled by torch.compile, forward and backward; PyTorch's counters, and the network's line numbers, as JSON."""

import inspect
import json

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(256, 512), nn.LayerNorm(512), nn.Linear(512, 10)

    def forward(self, batch):
        hidden = self.first(batch)
        hidden = nn.functional.gelu(hidden)
        hidden = self.norm(hidden)
        return self.last(hidden)


model = Network().cuda()
compiled = torch.compile(model)
batch = torch.empty(64, 256, device="cuda")
for _ in range(3):
    compiled(batch).square().mean().backward()
kernels = torch._dynamo.utils.counters["inductor"]
lines, first_line = inspect.getsourcelines(Network.forward)
print(
    json.dumps(
        {
            "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"],
            "fused": kernels["fxgraph_cache_miss"] + kernels["fxgraph_cache_hit"],
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
            "gradients": [parameter.grad is not None for parameter in model.parameters()],
            "lines": {line.strip(): first_line + index for index, line in enumerate(lines)},
        }
    )
)
