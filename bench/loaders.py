"""Step time of a loop whose batches come from the host: PrefetchLoader beside torch's pinned DataLoader, timm, and no copy at all.

    PYTHONPATH=build/release/python python bench/loaders.py [--batch 256] [--steps 60] [--rounds 7] [--workers 8] [--json FILE]

A batch is `--batch` images of 3 x 224 x 224 float32, read by the same workers for all; a step is matrix products that take
`--compute` times as long as the batch's copy from pinned memory. All ways take turns in one process; medians over the rounds of the
step's mean time, with quartiles. It fails where PrefetchLoader takes over 2% longer than the loop that copies nothing although
computing takes longer than copying, or longer than another loader. timm is measured where it is installed.
"""

import argparse
import importlib.util
import json
import pathlib
import statistics
import sys
import time

import tidemark
import torch
from torch.utils.data import DataLoader, Dataset

SHAPE = (3, 224, 224)
MOST_OVER_NO_COPY = 1.02
NOISE = 1.01  # between two loaders that do the same


class Images(Dataset):
    """Batches that cost a worker a copy, as decoded images would."""

    def __init__(self, steps, batch):
        self.steps = steps
        self.images = torch.randn(batch, *SHAPE)
        self.labels = torch.arange(batch)

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        return self.images.clone(), self.labels + index


def by_device(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


class Bench:
    def __init__(self, options):
        self.options = options
        self.dataset = Images(options.steps, options.batch)
        self.resident = [self.dataset.images.cuda(), self.dataset.labels.cuda()]
        self.matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
        pinned = self.dataset.images.pin_memory()
        target = torch.empty_like(self.resident[0])
        by_device(lambda: target.copy_(pinned, non_blocking=True))
        self.copy_s = statistics.median(by_device(lambda: target.copy_(pinned, non_blocking=True)) for _ in range(9))
        by_device(lambda: self.products(10))
        self.count = max(1, round(options.compute * self.copy_s / (by_device(lambda: self.products(50)) / 50)))
        self.compute_s = statistics.median(by_device(lambda: self.products(self.count)) for _ in range(9))

    def products(self, count):
        result = self.matrix
        for _ in range(count):
            result = result @ self.matrix
        return result

    def loader(self, pin):
        return DataLoader(self.dataset, batch_size=None, num_workers=self.options.workers, prefetch_factor=2, pin_memory=pin)

    def no_copy(self):
        for _ in range(self.options.steps):
            yield self.resident

    def torch_pinned(self):
        for batch in self.loader(pin=True):
            yield [tensor.cuda(non_blocking=True) for tensor in batch]

    def prefetch(self):
        with tidemark.PrefetchLoader(self.loader(pin=False)) as loader:
            yield from loader

    def prefetch_pinned(self):
        with tidemark.PrefetchLoader(self.loader(pin=True)) as loader:
            yield from loader

    def timm(self):
        from timm.data.loader import PrefetchLoader

        yield from PrefetchLoader(self.loader(pin=True), mean=(0, 0, 0), std=(1, 1, 1))

    def step_s(self, batches):
        """Mean time of a step, without the first ones, in which workers start."""
        began, steps, warmup = 0.0, 0, max(4, self.options.steps // 6)
        for number, (images, _) in enumerate(batches):
            if number == warmup:
                torch.cuda.synchronize()
                began = time.perf_counter()
            images[:1].sum()
            self.products(self.count)
            steps += number >= warmup
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--compute", type=float, default=1.5, help="compute time over copy time")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/loaders.py: measures copies to a GPU, and there is none")
    bench = Bench(options)
    ways = {"no copy": bench.no_copy, "torch, pinned": bench.torch_pinned, "PrefetchLoader": bench.prefetch,
            "PrefetchLoader, pinned": bench.prefetch_pinned}
    if importlib.util.find_spec("timm") is not None:
        ways["timm"] = bench.timm
    times = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            times[name].append(bench.step_s(way()))
    size = bench.dataset.images.nbytes
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batches of {size / 2**20:.0f} MiB, {options.workers} workers")
    print(f"copy {bench.copy_s * 1e3:.2f} ms ({size / bench.copy_s / 1e9:.1f} GB/s), compute {bench.compute_s * 1e3:.2f} ms")
    medians = {}
    for name, each in times.items():
        low, medians[name], high = statistics.quantiles(each, n=4)
        ratio = statistics.median(one / plain for one, plain in zip(each, times["no copy"]))
        print(f"{name:24} {medians[name] * 1e3:8.2f} ms a step ({low * 1e3:.2f} to {high * 1e3:.2f}), {ratio:.3f} x no copy")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"copy_s": bench.copy_s, "compute_s": bench.compute_s, "step_s": times}))
    best = min(medians["PrefetchLoader"], medians["PrefetchLoader, pinned"])
    others = min(value for name, value in medians.items() if name in ("torch, pinned", "timm"))
    failed = best > others * NOISE or (options.compute > 1 and best > medians["no copy"] * MOST_OVER_NO_COPY)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
