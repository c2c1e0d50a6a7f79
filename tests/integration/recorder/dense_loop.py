"""The densest allocation loop known: small layers, many parameters, one thread. An allocator event every 2 µs or so."""

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--plain", action="store_true", help="print no times, so that two runs print the same")
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12)))
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(16, 64)


def step():
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


for _ in range(20):
    step()
times = []
for _ in range(args.steps):
    began = time.perf_counter_ns()
    loss = step()
    times.append(time.perf_counter_ns() - began)
print(f"steps {args.steps} loss {loss.item():.9f}")
if not args.plain:
    times.sort()
    print(f"median_step_ns {times[len(times) // 2]} mean_step_ns {sum(times) // len(times)}")
