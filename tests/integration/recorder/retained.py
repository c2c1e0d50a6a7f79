"""Trains a small model in two processes: one keeps the losses of its validation, and with them their autograd graphs; the other keeps
their values. Each writes the bytes held by a graph, from autograd's saved tensors, to its own file in the folder in its argument.
"""

import json
import os
import sys

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.data import DataLoader

torch.set_num_threads(1)
torch.manual_seed(0)
keeps_graphs = os.fork() == 0
if not keeps_graphs:
    os.wait()

model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.LayerNorm(64), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters())
batches = DataLoader([(torch.randn(64), number % 10) for number in range(256)], batch_size=256)
losses = []


def train():
    inputs, labels = next(iter(batches))
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()


def validate():
    inputs, labels = next(iter(batches))
    return nn.functional.cross_entropy(model(inputs), labels)


for step in range(16):
    train()
    losses.append(validate() if keeps_graphs else validate().item())

saved = {}


def count(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    saved[storage.data_ptr()] = storage.nbytes()
    return tensor


with saved_tensors_hooks(count, lambda tensor: tensor):
    loss = validate()
for parameter in model.parameters():
    saved.pop(parameter.data_ptr(), None)
count(loss)
with open(os.path.join(sys.argv[1], "graphs" if keeps_graphs else "values"), "w", encoding="utf-8") as file:
    json.dump({"pid": os.getpid(), "graph_bytes": sum(saved.values())}, file)
os._exit(0)  # nothing is freed
