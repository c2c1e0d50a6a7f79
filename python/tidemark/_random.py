"""Restores random states, so that trials do not change the random numbers of the program."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidemark._torch import require_torch


@contextmanager
def random_state_kept(*generators: Any) -> Iterator[None]:
    """Restores the random states of Python, NumPy, PyTorch and these generators of PyTorch afterwards."""
    torch = require_torch("The state of random numbers")
    numpy: Any = sys.modules.get("numpy.random")
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    python_state = random.getstate()
    numpy_state = None if numpy is None else numpy.get_state()
    states = [(generator, generator.get_state()) for generator in generators]
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(python_state)
        if numpy is not None:
            numpy.set_state(numpy_state)
        for generator, state in states:
            generator.set_state(state)
