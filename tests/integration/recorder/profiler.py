"""torch.profiler's memory results, without anything that varies from run to run."""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(32, 128), torch.randint(0, 10, (32,))

with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

# The operator of a record is not printed: torch 1.13 finds it by times in microseconds and varies.
for row in sorted(prof.key_averages(), key=lambda row: row.key):
    if row.key != "[memory]":
        print(f"{row.key:60s} {row.count:6d}")
records = [event.nbytes() for event in prof.profiler.kineto_results.events() if event.name() == "[memory]"]
print("memory records, in order:", *records)
print("loss", f"{loss.item():.9f}")
