"""A DataLoader with settings chosen from the reading time of its data set."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from tidemark._random import random_state_kept
from tidemark.loading.batches import batch_bytes
from tidemark.loading.prefetch import PrefetchLoader
from tidemark.loading.processors import processors

_TRIAL_S = 0.5
_TRIAL_BATCHES = 4
# Cost of a worker's batch for the loop: 0.35 to 0.48 ms of processor time for small tensors (docs/prefetching.md). Faster data
# sets are read faster without workers.
_WORKER_HANDOFF_S = 0.0005
_MOST_AHEAD_BYTES = 1 << 30


@dataclass(frozen=True)
class LoaderSettings:
    """Settings chosen for a ``DataLoader``, and the measurements behind them."""

    num_workers: int  #: reading processes
    prefetch_factor: int | None  #: batches that each of them reads ahead; None without workers
    persistent_workers: bool  #: they live from epoch to epoch
    pin_memory: bool  #: a thread copies each batch to pinned memory
    batch_seconds: float | None  #: to read one batch in this process, on average; None if it could not be measured
    slowest_batch_seconds: float | None  #: the slowest measured batch
    batch_bytes: int | None  #: of the largest batch
    measured_batches: int  #: batches read for the measurement
    reason: str  #: for the number of workers


class OptimizedDataLoader:
    """Makes torch ``DataLoader`` objects with settings from measurements.

    ```python
    loader = tidemark.OptimizedDataLoader(dataset, batch_size=64, shuffle=True).get_prefetch_loader()
    ```
    """

    def __init__(self, dataset: Any, batch_size: int = 1, num_workers: int = 4, **options: Any) -> None:
        """Store a data set and its options.

        Args:
            dataset: as for ``DataLoader``.
            batch_size: samples of a batch.
            num_workers: the most worker processes; at most as many as processors available to this process are started.
            options: any other option of ``DataLoader``. A given option is not chosen: ``prefetch_factor``,
                ``persistent_workers``, ``pin_memory``.
        """
        if num_workers < 0:
            raise ValueError(f"num_workers={num_workers}: 0 or more")
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.options = options
        self._settings: LoaderSettings | None = None

    @property
    def settings(self) -> LoaderSettings:
        """The settings. The first call reads some batches, for at most half a second after the first batch."""
        if self._settings is None:
            self._settings = self._choose()
        return self._settings

    def create_loader(self) -> Any:
        """A ``torch.utils.data.DataLoader``."""
        return self._loader(pin=self.settings.pin_memory)

    def get_prefetch_loader(self, device: Any = None, **options: Any) -> PrefetchLoader:
        """A ``PrefetchLoader`` over a loader; options are those of ``PrefetchLoader``, which has its own pinned memory."""
        return PrefetchLoader(self._loader(pin=False), device, **options)

    def _loader(self, *, pin: bool) -> Any:
        from torch.utils.data import DataLoader

        chosen = self.settings
        options = {"pin_memory": pin, **self.options}
        if chosen.num_workers > 0:
            options = {
                "prefetch_factor": chosen.prefetch_factor,
                "persistent_workers": chosen.persistent_workers,
                **options,
            }
        return DataLoader(self.dataset, batch_size=self.batch_size, num_workers=chosen.num_workers, **options)

    def _choose(self) -> LoaderSettings:
        import torch

        times, largest = self._measure()
        mean = sum(times) / len(times) if times else None
        slowest = max(times) if times else None
        most = min(self.num_workers, processors())
        workers, reason = most, f"{most} of {self.num_workers} that were asked for: the processors of this process"
        if most == self.num_workers:
            reason = "as many as were asked for"
        if mean is not None and mean < _WORKER_HANDOFF_S:
            workers, reason = 0, f"a batch is read in {mean * 1e3:.2f} ms, faster than a worker hands it over"
        # Enough that the slowest batch does not empty the queue, and no more than fits into memory.
        ahead = 2 if not mean or slowest is None else max(2, min(8, math.ceil(slowest / mean)))
        if workers and largest:
            ahead = max(1, min(ahead, _MOST_AHEAD_BYTES // (largest * workers) or 1))
        return LoaderSettings(
            num_workers=workers,
            prefetch_factor=self.options.get("prefetch_factor", ahead) if workers else None,
            persistent_workers=bool(self.options.get("persistent_workers", workers > 0)),
            pin_memory=bool(self.options.get("pin_memory", torch.cuda.is_available())),
            batch_seconds=mean,
            slowest_batch_seconds=slowest,
            batch_bytes=largest,
            measured_batches=len(times),
            reason=reason,
        )

    def _measure(self) -> tuple[list[float], int | None]:
        """Seconds of each of the first batches, read in this process, and the bytes of the largest.

        An iterable data set is not read: if it can be read only once, the batches would be missing from its first epoch.
        """
        import torch
        from torch.utils.data import DataLoader, IterableDataset

        if self.num_workers == 0 or isinstance(self.dataset, IterableDataset):
            return [], None
        options = {
            key: value
            for key, value in self.options.items()
            if key not in ("prefetch_factor", "persistent_workers", "pin_memory", "multiprocessing_context", "timeout")
        }
        times: list[float] = []
        largest = 0
        with random_state_kept(*_generators(self.options)):  # shuffling and transforms take the training's random numbers
            batches = iter(DataLoader(self.dataset, batch_size=self.batch_size, num_workers=0, **options))
            until = time.perf_counter() + _TRIAL_S
            while len(times) < _TRIAL_BATCHES and (not times or time.perf_counter() < until):
                began = time.perf_counter()
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                times.append(time.perf_counter() - began)
                largest = max(largest, batch_bytes(batch, torch.Tensor))
        return times, largest or None


def _generators(options: dict[str, Any]) -> list[Any]:
    """PyTorch's generators that a ``DataLoader`` with these options draws from, besides the default one."""
    sampler = options.get("sampler") or getattr(options.get("batch_sampler"), "sampler", None)
    return [one for one in (options.get("generator"), getattr(sampler, "generator", None)) if one is not None]
