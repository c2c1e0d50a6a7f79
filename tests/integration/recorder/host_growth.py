"""Trains while host memory outside of tensors grows, or does not. The last line: its own numbers.

    python host_growth.py CASE
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

STEP_S = 0.03
# Growth that shows only in PSS, which takes a fifth of a second to read here, and so is read every 20 s.
SECONDS = 300
ITEM_S = 0.08
SLICE = 40


def anonymous(pid="self"):
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon:")]
    return int(line.split()[1]) << 10


def train(batches, after_step=lambda step: None):
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    began = 0
    for step, batch in enumerate(batches):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        after_step(step)
        if step == 10:
            began = anonymous()
    return {"grown_bytes": anonymous() - began}


def batches(count):
    for _ in range(count):
        time.sleep(STEP_S)
        yield torch.ones(4, 8)


def history_of_objects():
    """A list of Python numbers for each step."""
    history = []
    return train(batches(150), lambda step: history.append([float(number) for number in range(30000)]))


def cache_that_fills_up():
    """As many objects, but all within the first third."""
    history = []
    return train(batches(150), lambda step: history.append([float(number) for number in range(30000)]) if step < 40 else None)


class Items(Dataset):
    def __init__(self, count):
        self.items = [[float(number)] * 8 for number in range(count)]

    def __len__(self):
        return len(self.items) // SLICE

    def __getitem__(self, index):
        time.sleep(ITEM_S)
        return torch.tensor(self.items[index])


class Touched(Items):
    """Reading an object counts its references, which copies its page in this process."""

    def __getitem__(self, index):
        for item in self.items[index * SLICE : (index + 1) * SLICE]:
            item[0]
        return super().__getitem__(index)


class Cached(Items):
    """Each worker keeps the items it has read."""

    def __init__(self, count):
        super().__init__(count)
        self.cache = {}

    def __getitem__(self, index):
        self.cache[len(self.cache)] = bytes(1 << 14)
        return super().__getitem__(index)


def for_some_time(loader):
    end = time.monotonic() + SECONDS
    for batch in loader:
        yield batch
        if time.monotonic() > end:
            break


def pages_copied_by_workers():
    return train(for_some_time(DataLoader(Touched(320_000), batch_size=4, num_workers=2)))


def caches_of_workers():
    return train(for_some_time(DataLoader(Cached(320_000), batch_size=4, num_workers=2)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    cases = (history_of_objects, cache_that_fills_up, pages_copied_by_workers, caches_of_workers)
    print(json.dumps({case.__name__: case for case in cases}[sys.argv[1]]()), flush=True)
