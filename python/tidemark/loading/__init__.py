"""Batches that are read and copied to the device before the training loop needs them."""

from __future__ import annotations

from tidemark.loading.optimized import LoaderSettings as LoaderSettings
from tidemark.loading.optimized import OptimizedDataLoader as OptimizedDataLoader
from tidemark.loading.prefetch import PrefetchLoader as PrefetchLoader
from tidemark.loading.prefetch import PrefetchReport as PrefetchReport

__all__ = ["LoaderSettings", "OptimizedDataLoader", "PrefetchLoader", "PrefetchReport"]
