"""Trains a small model on the GPU, and answers lines on its stdin with CUDA's and PyTorch's counters, as a line of JSON each.

hold     stops training and answers; the numbers stay until the next line
go       continues; with peaks reset
leak     continues, and keeps a score of each step with its graph from now on
quit
"""

import json
import os
import select
import sys

import torch
from torch import nn

WARM_UP = 10  # steps; after them, every step takes the same


def answer():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    states = [value for state in adam.state.values() for value in state.values() if torch.is_tensor(value) and value.is_cuda]
    tensors = {
        "parameter": list(net.parameters()),
        "gradient": [parameter.grad for parameter in net.parameters() if parameter.grad is not None],
        "optimizer_state": states,
    }
    print(json.dumps({
        "pid": os.getpid(),
        "steps": steps,
        "free": free,
        "total": total,
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "tensors": {name: sum(one.numel() * one.element_size() for one in group) for name, group in tensors.items()},
    }), flush=True)  # fmt: skip


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
adam = torch.optim.Adam(net.parameters())
kept, steps, command = [], 0, "go"
while command != "quit":
    if command != "hold":
        batch = torch.randn(64, 1024, device="cuda")
        loss = net(batch).square().mean()
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=False)
        if command == "leak":
            kept.append(net(batch).mean())  # no backward pass frees its graph
        steps += 1
        if steps == WARM_UP:
            answer()
    # Some 50 steps a second; input is read line by line.
    if steps >= WARM_UP and select.select([sys.stdin], [], [], None if command == "hold" else 0.02)[0]:
        command = sys.stdin.readline().strip() or "quit"
        if command == "go":
            torch.cuda.reset_peak_memory_stats()
        if command != "quit":
            answer()
