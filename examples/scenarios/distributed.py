#!/usr/bin/env python3
"""Trains with DistributedDataParallel on CPU processes; rank 0 also collects the predictions of all for its log.

    tidemark run -o job.tide -- torchrun --nproc-per-node 4 examples/scenarios/distributed.py
    tidemark summary job.rank*.tide
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn


def log_predictions(predictions, log):
    gathered = [torch.empty_like(predictions) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    dist.gather(predictions, gathered)
    if gathered:
        log.append(torch.cat(gathered))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = []
    for _ in range(args.steps):
        x = torch.randn(128, 256)
        predictions = model(x)
        nn.functional.mse_loss(predictions, x).backward()
        optimizer.step()
        optimizer.zero_grad()
        log_predictions(predictions.detach(), log)
        dist.barrier()  # what gathered has let go of its tensors when the next step begins
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
