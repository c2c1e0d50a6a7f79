#!/usr/bin/env python3
"""Losses that are kept with their graphs, a cache in a closure, and a cycle: who holds their memory?"""

import gc

import tidemark
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
losses = []


def remember(cache):
    def step(batch):
        cache["last"] = model(batch)
        return cache["last"].square().mean()

    return step


class Trainer:
    def __init__(self):
        self.hook = Hook(self)


class Hook:
    def __init__(self, trainer):
        self.trainer = trainer
        self.seen = torch.zeros(1000, 1000)


step = remember({})
for _ in range(2):
    losses.append(step(torch.ones(4096, 512)))

gc.disable()  # so that the cycle below is not collected meanwhile
address = Trainer().hook.seen.data_ptr()

print("The largest storages")
print(tidemark.largest_holders(4))
print("\nThe one at an address, such as a leak's")
print(tidemark.holders(address))
