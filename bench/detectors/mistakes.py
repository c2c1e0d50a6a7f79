"""A training loop on a GPU, phantom or not, with a common mistake or none: mistakes.py KIND STEPS.

Prints as JSON the step at which the mistake began, whether memory ran out, and when each step ended, in ns since the first
allocation.
"""

import json
import random
import sys
import time

import torch
from torch import nn

kind, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
random.seed(0)
first = torch.empty(1, device="cuda")
start = time.monotonic_ns()
model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.GELU()))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
begin = steps // 5
losses, kept, cache, metrics, seen = [], [], {}, [], []
batch = 256


def loss_of(size):
    return model(torch.randn(size, 512, device="cuda")).square().mean()


ends = []
out_of_memory = False
try:
    for step in range(steps):
        faulty = step >= begin
        if kind == "hooks" and step == begin:
            model[2].register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
        size = random.randint(16, batch) if kind == "variable_length" else batch
        if kind == "batch_slope" and faulty:
            size += 8 * (step - begin)
        for _ in range(4 if kind == "accumulation" else 1):
            loss = loss_of(size)
            loss.backward(retain_graph=kind == "losses" and faulty)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if faulty and kind == "losses" and step % 4 == 0:
            losses.append(loss)
        if faulty and kind == "containers":
            kept.append(torch.empty(256, 512, device="cuda"))
        if faulty and kind == "caches" and random.random() < 0.3:
            cache[step] = torch.empty(random.randint(256, 1024), 512, device="cuda")
        if kind in ("metrics", "evaluation") and step % 25 == 0:
            with torch.no_grad():
                outputs = [model(torch.randn(batch, 512, device="cuda")) for _ in range(8)]
            if faulty and kind == "metrics":
                metrics.extend(outputs)
            del outputs
        del loss
        ends.append(time.monotonic_ns() - start)
except torch.OutOfMemoryError:
    out_of_memory = True
    ends.append(time.monotonic_ns() - start)
print(json.dumps({"begin": begin, "out_of_memory": out_of_memory, "ends": ends}))
