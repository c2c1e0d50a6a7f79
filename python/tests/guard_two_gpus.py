"""Two ranks with DDP on two GPUs whose memory is limited; the second rank has rare long batches. Each prints a line of JSON.

Run by torchrun, or without a rank: then it starts both ranks, on a simulated GPU too. `--compare`: with the parameters of a
training without a guard and a limit, which a simulated GPU cannot compute. `--groups nccl`: backends of the group.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

STEPS = 16
LONG_STEPS = (9, 13)


def train(rank: int, limit_mib: int | None) -> tuple[Any, Any]:
    """The guard, if there is a limit, and the parameters."""
    import guard_trainer
    import torch

    import tidemark

    total = torch.cuda.get_device_properties(rank).total_memory
    torch.cuda.set_per_process_memory_fraction(1.0 if limit_mib is None else limit_mib * 2**20 / total)
    model, optimizer = guard_trainer.make("cuda")
    ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    sizes = [640 if rank == 1 and step in LONG_STEPS else 64 + 7 * ((step + rank) % 6) for step in range(STEPS)]
    guard = None if limit_mib is None else tidemark.StepGuard(ddp, timeout=60)
    data = guard_trainer.batches("cuda", sizes)
    decisions = []
    for batch in data if guard is None else guard.batches(data):
        if guard is None:
            guard_trainer.mean_loss(ddp, batch).backward()
        else:
            for part in guard.parts(batch):
                (guard_trainer.mean_loss(ddp, part.batch) * part.weight).backward()
            decisions.append((guard.decision.action, guard.decision.parts, guard.decision.rank))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return decisions, [parameter.detach().clone() for parameter in model.parameters()]


def run_rank(options: argparse.Namespace) -> None:
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group(options.groups)
    decisions, guarded = train(rank, options.limit)
    told = {"rank": rank, "decisions": decisions, "difference": None}
    if options.compare:
        _, plain = train(rank, None)
        told["difference"] = max(float((one - other).abs().max()) for one, other in zip(guarded, plain))
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    dist.destroy_process_group()


def launch() -> int:
    job = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ.get("MASTER_PORT", "29571")}
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:]], env={**os.environ, **job, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        )
        for rank in range(2)
    ]
    return max(rank.wait() for rank in ranks)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=240, help="MiB of each rank")
    parser.add_argument("--groups", default="nccl")
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    if "RANK" not in os.environ:
        return launch()
    run_rank(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
