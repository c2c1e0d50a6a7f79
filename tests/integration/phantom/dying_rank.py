"""Two ranks that train with DistributedDataParallel until rank 1 runs out of memory, as a launcher without restarts runs them:
the first rank that fails ends the other. Prints how each ended, as JSON.

`--leak`: rank 1 keeps an output of every step. `--steps`: after which they end.
"""

import argparse
import json
import os
import sys
import time

from rank_launcher import start


def launch():
    ranks = start(*sys.argv)
    while any(rank.poll() is None for rank in ranks) and not any(rank.poll() for rank in ranks):
        time.sleep(0.02)
    for rank in ranks:
        rank.kill()
    outputs = [rank.communicate()[0] for rank in ranks]
    print(json.dumps([json.loads(output.splitlines()[-1]) if output else None for output in outputs]))
    sys.exit(1 if any(rank.returncode for rank in ranks) else 0)


def train(options, rank):
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda(), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    kept = []
    for step in range(1, options.steps + 1):
        try:
            output = model(torch.empty(1024, 1024, device="cuda"))
            output.square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        except torch.cuda.OutOfMemoryError:
            print(json.dumps({"rank": rank, "failed_at_step": step}), flush=True)
            os._exit(1)
        if options.leak and rank == 1:
            kept.append(output.detach())
    print(json.dumps({"rank": rank, "steps": step}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--leak", action="store_true")
    parser.add_argument("--steps", type=int, default=200)
    if "RANK" in os.environ:
        train(parser.parse_args(), int(os.environ["RANK"]))
    else:
        launch()
