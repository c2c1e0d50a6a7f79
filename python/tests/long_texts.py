"""Data with rare long samples, and what makes batches of them."""

from __future__ import annotations

import random
from typing import Any

import torch


class Texts(torch.utils.data.Dataset):  # type: ignore[misc]
    """Rare long texts; counts the samples that are read."""

    def __init__(self, count: int = 200, seed: int = 1, known: bool = True) -> None:
        draw = random.Random(seed)
        self.sizes = [int(draw.lognormvariate(3, 0.7)) + 1 for _ in range(count)]
        if known:
            self.lengths = self.sizes
        self.read = 0

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> Any:
        self.read += 1
        torch.rand(3), random.random()  # augmentation
        return torch.full((self.sizes[index],), index)


def collate(texts: Any) -> Any:
    return torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)


class Buckets:
    """Batches of similar lengths with at most so many tokens, in another order in each epoch."""

    def __init__(self, sizes: list[int], tokens: int) -> None:
        self.epoch = 0
        self.batches: list[list[int]] = [[]]
        for index in sorted(range(len(sizes)), key=sizes.__getitem__):
            if self.batches[-1] and (len(self.batches[-1]) + 1) * sizes[index] > tokens:
                self.batches.append([])
            self.batches[-1].append(index)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Any:
        order = list(range(len(self.batches)))
        random.Random(self.epoch).shuffle(order)
        return iter([self.batches[place] for place in order])
