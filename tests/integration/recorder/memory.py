"""The densest loop known, on several threads, and many different stacks; after each number of steps it records its resident memory.

A list as JSON: bytes of this process by kind of page, from /proc/self/status.
"""

import argparse
import json
import sys
import threading

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, nargs="+", default=[100])
parser.add_argument("--threads", type=int, default=4)
args = parser.parse_args()
torch.set_num_threads(1)


def train(steps):
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12)))
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 64)
    for _ in range(steps):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def vary(depth, bits):
    """Allocates at the end of one of many ways through two lines."""
    if depth == 0:
        return torch.empty(64)
    if bits & 1:
        return vary(depth - 1, bits >> 1)
    return vary(depth - 1, bits >> 1)


def work(steps):
    train(steps)
    for bits in range(steps * 10):
        vary(12, bits)


def run(steps):
    threads = [threading.Thread(target=work, args=(steps,)) for _ in range(args.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {name: int(status[name].split()[0]) << 10 for name in ("VmHWM", "RssAnon", "RssFile", "RssShmem")}


json.dump([run(steps) for steps in args.steps], sys.stdout)
