"""A DataLoader with two forked workers that hold memory of their own, and a tensor in shared memory: prints their
pids, then waits until its stdin ends."""

import json
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

MIB = 1 << 18  # floats
WORKER_MIB = 48


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if not hasattr(self, "held"):
            self.held = torch.ones(WORKER_MIB * MIB)
        return torch.full((MIB,), float(index))


if __name__ == "__main__":
    held = torch.ones(32 * MIB)
    shared = torch.ones(24 * MIB).share_memory_()
    loader = iter(DataLoader(Numbers(), batch_size=1, num_workers=2, multiprocessing_context="fork"))
    batches = [next(loader) for _ in range(4)]
    workers = [worker.pid for worker in loader._workers]
    print(json.dumps({"main": os.getpid(), "workers": workers}), flush=True)
    sys.stdin.read()
    print("end", len(held) + len(shared) + len(batches), flush=True)
