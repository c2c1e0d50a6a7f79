"""Trains a small model for three steps on the first GPU and prints PyTorch's own counters, as JSON.

--blocks N also holds N blocks of 128 MiB; --fail raises an error at the end; --cpu uses no GPU.
"""

import argparse
import json

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--blocks", type=int, default=0)
parser.add_argument("--fail", action="store_true")
parser.add_argument("--cpu", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
device = "cpu" if args.cpu else "cuda"
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.randn(256, 1024, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
held = [torch.empty(128 << 20, dtype=torch.uint8, device=device) for _ in range(args.blocks)]
loss.item()
if args.fail:
    raise RuntimeError("no more")
if not args.cpu:
    free, total = torch.cuda.mem_get_info()
    said = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    print(json.dumps({**said, "total": total, "used": total - free, "name": torch.cuda.get_device_name()}))
