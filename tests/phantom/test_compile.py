"""torch.compile: Triton compiles and loads its kernels through the phantom's driver."""

import shutil
import sysconfig
import unittest
from pathlib import Path

from phantom import Case


class Compile(Case):
    def test_forward_and_backward(self):
        if shutil.which("gcc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
            self.skipTest("Triton needs gcc and Python.h")
        _, result, _ = self.plan("compiled.py", TRITON_CACHE_DIR=str(self.folder / "triton"), TORCHINDUCTOR_COMPILE_THREADS="1")
        self.assertEqual(result["graphs"], 1)
        self.assertTrue(all(result["gradients"]))
        # What was loaded had been compiled to machine code for the device.
        self.assertTrue(list(self.folder.glob("triton/**/*.cubin")))
        recorded = self.device(device="cuda:0")
        self.assertEqual(recorded["peak_allocated_bytes"], result["peak_allocated"])
        self.assertEqual(recorded["peak_reserved_bytes"], result["peak_reserved"])


if __name__ == "__main__":
    unittest.main()
