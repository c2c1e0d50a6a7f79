"""What the drivers beside this file share: a PyTorch program that runs on phantom GPUs, recorded.

Besides what tests/programs/driver.py reads from the environment: TIDEMARK_WRITE_STANDINS is the program of write_standins.cpp,
TIDEMARK_PHANTOM_LIBRARY is libtidemark_phantom.so.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
import driver  # noqa: E402

MIB = 1 << 20
GIB = 1 << 30

# An H200; `memory` and `devices` are set by the tests.
PROFILE = {
    "name": "NVIDIA H200",
    "memory": 150121545728,
    "context": 692060160,
    "major": 9,
    "minor": 0,
    "multiprocessors": 132,
    "shared_per_block_optin": 232448,
    "shared_per_multiprocessor": 233472,
    "l2_cache": 62914560,
    "memory_bus_bits": 6144,
    "clock_khz": 1980000,
    "memory_clock_khz": 3201000,
    "cuda_version": 13000,
    "cublas_version": 130100,
    "cudnn_version": 91900,
    "nccl_version": 22809,
}


class Case(driver.Case):
    """A test case with phantom GPUs. The stand-ins are written once for a class."""

    profile = PROFILE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="tidemark-phantom-")
        cls.addClassCleanup(folder.cleanup)
        cls.standins = Path(folder.name)
        torch = Path(importlib.util.find_spec("torch").origin).parent
        written = subprocess.run(
            [os.environ["TIDEMARK_WRITE_STANDINS"], folder.name, torch, os.environ["TIDEMARK_PHANTOM_LIBRARY"]],
            capture_output=True,
            text=True,
            check=True,
        )
        cls.preload = written.stdout
        (cls.standins / "device").write_text("".join(f"{key} {value}\n" for key, value in cls.profile.items()))

    def environment(self, **variables):
        """What a program needs to find the phantom GPUs; the preloaded libraries are for it alone, not for tidemark."""
        return driver.environment(TIDEMARK_PHANTOM=str(self.standins), **variables)

    def program(self, name, *arguments):
        """The command line of one of the programs in this folder."""
        path = Path(__file__).resolve().parent / name
        python = "import os, sys; os.environ['LD_PRELOAD'] = sys.argv[1] + os.environ.get('LD_PRELOAD', ''); os.execv(sys.argv[2], sys.argv[2:])"
        return [driver.PYTHON, "-S", "-E", "-c", python, self.preload, driver.PYTHON, str(path), *map(str, arguments)]

    def record_program(self, name, *arguments, options=(), **variables):
        """Records a program, which must end with exit code 0. What it printed as JSON, and its stderr."""
        done = self.record_well(
            self.program(name, *arguments), "--stacks", "none", *options, env=self.environment(**variables)
        )
        return json.loads(done.stdout.splitlines()[-1]), done.stderr.decode()
