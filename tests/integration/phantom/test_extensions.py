"""CUDA code besides PyTorch's: memory taken by an extension is counted and named, and a separate CUDA runtime is refused."""

import json
import subprocess
import unittest
from pathlib import Path

from phantom import CONTEXT, MIB, Case, driver

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "data/kernels"


class Extensions(Case):
    def build(self, name, *words):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(self.folder / name), *map(str, words)], check=True)
        return str(self.folder / name)

    def run_plan(self, *words):
        return driver.run([driver.TIDEMARK, "plan", "--gpu", "H200", "-o", str(self.output), *words])

    def test_an_extension_and_steps_by_marks(self):
        # Its symbols have versions, like those linked from NVIDIA's library.
        script = self.folder / "versions"
        script.write_text("libcudart.so.13 { *; };")
        stub = self.build("libcudart.so.13", HERE / "extension.c", "-Wl,-soname,libcudart.so.13", f"-Wl,--version-script={script}", "-DSTUB")
        extension = self.build("libextension.so", HERE / "extension.c", stub)
        command = [driver.PYTHON, str(HERE / "inference.py"), extension, str(KERNELS / "zstd.fatbin")]
        done = self.run_plan("--format", "json", "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        (device,) = plan["devices"]
        printed = done.stderr.decode().splitlines()
        # 12 registers: the value of an H200 for the file.
        self.assertEqual(json.loads(printed[0]), {"registers": 12, "launched": 0})
        self.assertEqual((plan["kernel_estimate_count"], plan["unanswered_functions"]), (0, []))
        # 48 MiB permanently, 16 in each step, and the pool's chunk.
        taken = (48 + 16 + 32) * MIB
        self.assertEqual(device["libraries"], [{"name": "libextension.so", "peak_bytes": taken}])
        self.assertEqual(device["device_used_bytes"], device["peak_reserved_bytes"] + taken + CONTEXT + device["driver_bytes"])
        # It was ended with the third range: later code in it, and the six others, were not run.
        self.assertEqual(printed[1:], ["batch 0", "batch 1", "batch 2"])
        self.assertEqual((plan["steps"], plan["steps_by"], plan["stopped"]), (3, "marks", True))
        self.assertIn("used in 3 steps,", plan["verdict"])
        self.assertEqual(json.loads(self.read("leaks", "--format", "json", self.output))["steps"]["count"], 3)

    def assert_refused(self, library, function):
        done = self.run_plan("--", driver.PYTHON, "-c", f"import ctypes; print(ctypes.CDLL({library!r}).{function}())")
        self.assertEqual((done.returncode, self.recordings()), (2, []), done.stderr)
        (at_once, at_the_end) = done.stderr.decode().splitlines()
        self.assertIn(f"{library} has a CUDA runtime of its own, which the phantom GPU cannot answer", at_once)
        self.assertIn(f"{library} has a CUDA runtime of its own, linked statically or of another version", at_the_end)
        return done.stdout

    def test_a_runtime_of_its_own(self):
        self.assertEqual(self.assert_refused(self.build("libown.so", HERE / "own_runtime.c"), "start"), b"4\n")

    def test_nvidias_static_runtime(self):
        found = driver.run([driver.PYTHON, "-c", "import nvidia; print(*nvidia.__path__)"]).stdout.decode().strip()
        static = next(Path(found).glob("**/libcudart_static.a"), None) if found else None
        if static is None:
            self.skipTest("this interpreter has no libcudart_static.a")
        source = self.folder / "static.c"
        source.write_text("int cudaFree(void*); int start(void) { return cudaFree(0) != 0; }")
        self.assertEqual(self.assert_refused(self.build("libstatic.so", source, static, "-ldl", "-lrt", "-lpthread"), "start"), b"1\n")


if __name__ == "__main__":
    unittest.main()
