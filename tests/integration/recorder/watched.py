"""Trains a small model on the CPU until its stdin ends, and keeps a score of each step with its graph.

First it prints, as JSON, how many bytes its parameters, their gradients and the optimizer's state have, in all and by module,
and the line that leaks, for comparison with monitors of the recording.
"""

import inspect
import json
import select
import sys

import torch
from torch import nn

SETTLED = 40  # steps before it prints its values


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 256)
        self.mlp = nn.Linear(256, 1024)
        self.head = nn.Linear(1024, 32)

    def forward(self, tokens):
        return self.head(torch.relu(self.mlp(self.embedding(tokens))))


def size_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)


def answer():
    states = [value for state in adam.state.values() for value in state.values() if torch.is_tensor(value)]
    return {
        "parameter": size_of(net.parameters()),
        "gradient": size_of(parameter.grad for parameter in net.parameters()),
        "optimizer state": size_of(states),
        "modules": {name: size_of(module.parameters()) for name, module in net.named_children()},
        "leaking_line": inspect.getsourcelines(Net.forward)[1] + 1,
    }


torch.set_num_threads(1)
torch.manual_seed(0)
net = Net()
adam = torch.optim.Adam(net.parameters())
kept = []
for step in range(1_000_000):
    tokens = torch.randint(1000, (4,))
    loss = net(tokens).square().mean()
    loss.backward()
    adam.step()
    adam.zero_grad(set_to_none=False)
    kept.append(net(tokens).mean())  # no backward pass frees its graph
    if step == SETTLED:
        print(json.dumps(answer()), flush=True)
    if step >= SETTLED and select.select([sys.stdin], [], [], 0.05)[0]:
        break
