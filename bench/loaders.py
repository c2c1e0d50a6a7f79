"""Step time of a loop over batches from the host: PrefetchLoader, torch's pinned DataLoader, timm, and no copy.

    PYTHONPATH=build/release/python python bench/loaders.py [--batch 128] [--steps 40] [--rounds 7] [--workers 8] [--json FILE]

Three scenes, with batches of `--batch` images of 3 x 224 x 224:
  float32         from worker processes, which send memory filled before: reading costs nothing
  uint8           the same; converted to float32 on the device, and normalized there, as timm's loader does
  float32 pinned  from a list of tensors in pinned memory: only the copy to the device remains
Each way of loading runs a loop without computing (how fast it can be), and one whose step computes `--compute` times as long
as the slower of PrefetchLoader's batch without computing and the copy from pinned memory. All ways take turns in one process,
over the same batches; normalizing belongs to each. Medians over the rounds, with quartiles; no round is begun after
`--seconds`.

It fails if PrefetchLoader, in a scene, takes over 2% longer than the loop that copies nothing, or longer than another loader
in either loop. timm is measured if it can be imported.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import tidemark
import torch
from torch.utils.data import DataLoader, Dataset

SHAPE = (3, 224, 224)
MOST_OVER_NO_COPY = 1.02
NOISE = 1.01  # between two equal loaders
COMPUTING, BARE = "computing", "bare"


class Images(Dataset):
    """The same batch each time: a worker that has sent it has it in shared memory, and sends that again."""

    def __init__(self, steps, images):
        self.steps = steps
        self.images = images
        self.labels = torch.arange(len(images))

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        return self.images, self.labels


def images_of(batch, dtype):
    return torch.randint(0, 256, (batch, *SHAPE), dtype=torch.uint8) if dtype == torch.uint8 else torch.randn(batch, *SHAPE)


def by_device(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


class Scene:
    """The ways to load one kind of batch."""

    def __init__(self, name, options, dtype, matrix, timm):
        self.name, self.options, self.matrix = name, options, matrix
        self.mean, self.std = torch.zeros(1, 3, 1, 1, device="cuda"), torch.ones(1, 3, 1, 1, device="cuda")
        self.images = images_of(options.batch, dtype)
        self.resident = [self.images.cuda(), torch.arange(options.batch, device="cuda")]
        self.dtypes = {torch.uint8: torch.float32} if dtype == torch.uint8 else None
        self.sources = self.make_sources()
        self.ways = {"no copy": self.no_copy, "torch, non_blocking": self.torch_copies}
        self.own = []
        for source, batches in self.sources.items():
            loader = tidemark.PrefetchLoader(batches, dtype=self.dtypes)
            self.own.append(loader)
            name = "PrefetchLoader" if source == "pageable" else "PrefetchLoader, pinned"
            self.ways[name] = lambda loader=loader: self.prefetch(loader)
        if timm is not None:
            loader = timm(self.sources["pinned"], mean=(0, 0, 0), std=(1 / 255, 1 / 255, 1 / 255))
            self.ways["timm"] = lambda: loader
        self.times = {(name, how): [] for name in self.ways for how in (BARE, COMPUTING)}
        self.count = 0

    def make_sources(self):
        if self.name == "float32 pinned":
            pinned = [(self.images.clone().pin_memory(), torch.arange(self.options.batch).pin_memory()) for _ in range(4)]
            return {"pinned": [pinned[step % 4] for step in range(self.options.steps)]}
        dataset = Images(self.options.steps, self.images)
        return {
            name: DataLoader(
                dataset,
                batch_size=None,
                num_workers=self.options.workers,
                prefetch_factor=2,
                persistent_workers=True,
                pin_memory=name == "pinned",
            )
            for name in ("pageable", "pinned")
        }

    def normalized(self, images):
        return images.to(torch.float32).sub_(self.mean).div_(self.std)

    def no_copy(self):
        for _ in range(self.options.steps):
            yield self.normalized(self.resident[0]), self.resident[1]

    def torch_copies(self):
        for images, labels in self.sources["pinned"]:
            yield self.normalized(images.cuda(non_blocking=True)), labels.cuda(non_blocking=True)

    def prefetch(self, loader):
        for images, labels in loader:
            yield self.normalized(images), labels

    def reading_s(self):
        """Time for receiving an unchanged batch from the workers in this process."""
        if "pageable" not in self.sources:
            return 0.0
        for _ in self.sources["pageable"]:  # they start, and fill their memory
            pass
        began = time.perf_counter()
        for _ in self.sources["pageable"]:
            pass
        return (time.perf_counter() - began) / self.options.steps

    def copy_s(self):
        pinned, target = self.images.pin_memory(), torch.empty_like(self.resident[0])
        times = [by_device(lambda: target.copy_(pinned, non_blocking=True)) for _ in range(9)]
        return statistics.median(times[1:])

    def products(self, count):
        result = self.matrix
        for _ in range(count):
            result = result @ self.matrix
        return result

    def step_s(self, batches, count):
        """Mean time of a step, without the first ones, which get batches that are ready already."""
        began, steps, warmup = 0.0, 0, max(4, self.options.steps // 4)
        for number, (images, _) in enumerate(batches):
            if number == warmup:
                torch.cuda.synchronize()
                began = time.perf_counter()
            images[:1].sum()
            self.products(count)
            steps += number >= warmup
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / steps

    def prepare(self):
        """Choose how much a step computes, after each way has run once."""
        self.reading, self.copy = self.reading_s(), self.copy_s()
        for way in self.ways.values():  # their one-time allocations
            self.step_s(way(), 0)
        bare = {name: self.step_s(way(), 0) for name, way in self.ways.items()}
        slower = max(self.copy, min(value for name, value in bare.items() if name.startswith("PrefetchLoader")))
        by_device(lambda: self.products(10))
        self.count = max(1, round(self.options.compute * slower / (by_device(lambda: self.products(50)) / 50)))
        self.compute = statistics.median(by_device(lambda: self.products(self.count)) for _ in range(5))

    def round(self):
        for name, way in self.ways.items():
            for how, count in ((BARE, 0), (COMPUTING, self.count)):
                self.times[name, how].append(self.step_s(way(), count))

    def median(self, name, how):
        return statistics.median(self.times[name, how])

    def report(self):
        size = self.images.nbytes
        print(
            f"\n{self.name}: batches of {size / 2**20:.0f} MiB; reading {self.reading * 1e3:.2f} ms, "
            f"copy from pinned memory {self.copy * 1e3:.2f} ms ({size / self.copy / 1e9:.1f} GB/s), compute {self.compute * 1e3:.2f} ms"
        )
        print(f"{'':24}{'ms a step, no computing':>26}{'ms a step, computing':>36}{'of no copy':>12}")
        for name in self.ways:
            low, _, high = quartiles(self.times[name, COMPUTING])
            bare = self.median(name, BARE)
            ratio = statistics.median(
                one / plain for one, plain in zip(self.times[name, COMPUTING], self.times["no copy", COMPUTING])
            )
            rate = "" if name == "no copy" else f" ({size / bare / 1e9:.1f} GB/s)"
            print(
                f"{name:24}{f'{bare * 1e3:.2f}{rate}':>26}{self.median(name, COMPUTING) * 1e3:>16.2f} ({low * 1e3:7.2f} to {high * 1e3:7.2f}){ratio:>12.3f}"
            )
        if self.reading >= self.compute:
            print("  the workers are the slowest here: this says nothing of the loaders")

    def failures(self):
        """The failures as sentences."""
        found = []
        own = [name for name in self.ways if name.startswith("PrefetchLoader")]
        others = [name for name in self.ways if name not in own and name != "no copy"]
        for how in (BARE, COMPUTING):
            best = min(self.median(name, how) for name in own)
            for other in others:
                if best > self.median(other, how) * NOISE:
                    found.append(
                        f"{self.name}, {how}: PrefetchLoader {best * 1e3:.2f} ms, {other} {self.median(other, how) * 1e3:.2f} ms"
                    )
        ratio = min(
            statistics.median(one / plain for one, plain in zip(self.times[name, COMPUTING], self.times["no copy", COMPUTING]))
            for name in own
        )
        if self.options.compute > 1 and ratio > MOST_OVER_NO_COPY:
            found.append(f"{self.name}: {ratio:.3f} times as long as without a copy, at most {MOST_OVER_NO_COPY}")
        return found

    def close(self):
        """End the workers: at the process's end, PyTorch would wait five seconds for each worker of a pinning loader."""
        for loader in self.own:
            loader.close()
        for holder in (self.own, self.ways, self.sources):
            holder.clear()

    def figures(self):
        return {
            "batch_bytes": self.images.nbytes,
            "reading_s": self.reading,
            "copy_s": self.copy,
            "compute_s": self.compute,
            "step_s": {how: {name: self.times[name, how] for name in self.ways} for how in (BARE, COMPUTING)},
        }


def quartiles(values):
    return statistics.quantiles(values, n=4) if len(values) > 1 else values * 3


def timm_loader():
    try:
        from timm.data.loader import PrefetchLoader
    except ImportError as error:
        print(f"without timm: {error}")
        return None
    return PrefetchLoader


def fitting_batch(options):
    """The batch size, limited by shared memory: each worker keeps one batch of each scene and loader, and a few are in
    transfer.
    """
    shared = os.statvfs("/dev/shm")
    image = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]
    room = shared.f_bavail * shared.f_frsize // 2 // (3 * (options.workers + 2) * image)
    if room < options.batch:
        print(
            f"/dev/shm has {shared.f_bavail * shared.f_frsize >> 20} MiB: batches of {max(room, 1)} images in place of {options.batch}"
        )
    return max(1, min(options.batch, room))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=min(8, os.cpu_count() // 2))
    parser.add_argument("--compute", type=float, default=1.5, help="compute time over what loading takes")
    parser.add_argument("--seconds", type=float, default=75, help="after which no round is begun")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/loaders.py: measures copies to a GPU, and there is none")
    until = time.perf_counter() + options.seconds
    options.batch = fitting_batch(options)
    timm = timm_loader()
    matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    dtypes = {"float32": torch.float32, "uint8": torch.uint8, "float32 pinned": torch.float32}
    scenes = [Scene(name, options, dtype, matrix, timm) for name, dtype in dtypes.items()]
    for scene in scenes:
        scene.prepare()
    rounds = 0
    while rounds < options.rounds and (rounds == 0 or time.perf_counter() < until):
        for scene in scenes:
            scene.round()
        rounds += 1
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.workers} workers, {rounds} rounds of {options.steps} steps"
    )
    for scene in scenes:
        scene.report()
    failures = [failure for scene in scenes for failure in scene.failures()]
    for failure in failures:
        print(f"FAILED  {failure}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({scene.name: scene.figures() for scene in scenes}))
    for scene in scenes:
        scene.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
