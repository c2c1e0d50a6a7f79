"""The hooks have the names under which this PyTorch calls the replaced functions: most are called by every
program here, but not what a GPU without memory calls."""

import ctypes
import os
import re
import unittest
from pathlib import Path

from driver import PYTHON, run

REPORTS = re.compile(
    rb"_ZN3c10\d+(?:report(?:MemoryUsage|OutOfMemory)ToProfiler"
    rb"|ProfiledCPUMemoryReporter(?:3New|6Delete|11OutOfMemory))E\w+"
)


class Symbols(unittest.TestCase):
    def test_hooks_have_the_names_that_pytorch_calls(self):
        torch = run([PYTHON, "-c", "import importlib.util as u; print(u.find_spec('torch').origin)"]).stdout.decode()
        reports = set(REPORTS.findall((Path(torch).parent / "lib" / "libc10.so").read_bytes()))
        self.assertEqual(len(reports), 5)
        hooks = ctypes.CDLL(os.environ["TIDEMARK_PRELOAD"])
        for name in reports:
            self.assertTrue(hasattr(hooks, name.decode()), name)


if __name__ == "__main__":
    unittest.main()
