#!/usr/bin/env python3
"""A plain loop whose steps a recording knows, and whose memory goes to TensorBoard, where it is installed.

tidemark run -o run.tide -- python examples/watch_loop.py
"""

import torch
from tidemark.integrations.plain import steps
from torch import nn

try:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter("runs/watch_loop")
except ImportError:
    writer = print  # any function (scalars, step)

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Linear(256, 256).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = [torch.ones(32, 256, device=device)] * 20

for epoch in range(2):
    for batch in steps(batches, name=f"epoch {epoch}", writer=writer, every=10, first=epoch * len(batches)):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
if writer is not print:
    writer.close()  # TensorBoard writes in a thread of its own, which may not be done when the program ends
