"""Two ranks on two GPUs, of which the second one has half the memory, search a batch size, together and alone.

Each prints a line of JSON. Starts both ranks itself, on a simulated GPU too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

LIMITS = (8 << 30, 4 << 30)


def run_rank() -> None:
    import torch
    import torch.distributed as dist

    import tidemark

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.cuda.set_per_process_memory_fraction(LIMITS[rank] / torch.cuda.get_device_properties(rank).total_memory)
    dist.init_process_group(sys.argv[1])
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())

    def step(batch_size: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        ddp.module(torch.randn(batch_size << 10, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def told(found: Any) -> dict[str, Any]:
        return {name: getattr(found, name) for name in ("batch_size", "ended", "slope_bytes", "limit_bytes")}

    together = tidemark.auto_batch_size(step, timeout=60)
    line = {"rank": rank, "together": told(together), "sizes": [probe.batch_size for probe in together.probes]}
    line["alone"] = told(tidemark.auto_batch_size(step, process_group=False))
    ddp(torch.randn(8, 1024, device="cuda")).sum().backward()  # the group is as usable as before
    line["reduced"] = model[0].weight.grad is not None
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    dist.destroy_process_group()


def launch() -> int:
    job = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    ranks = [
        subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **job, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(2)
    ]
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(launch() if "RANK" not in os.environ else run_rank())
