"""Values that a plan knows: what the host copied to the device, and what follows from it, on small tensors."""

import os
import unittest
from pathlib import Path

from phantom import MIB, Case, driver

CASES = Path(os.environ.get("TIDEMARK_CASES", "none")) / "plan"

# Programs that failed, or took GiB, while results were zeros or bytes of earlier tensors. A real GPU takes below 128 MiB for the
# fourth and the sixth, and a cuBLAS workspace of at most 64 MiB and a few KiB for the others. The last two failed because functions
# of cuDNN and cuSPARSE had no answer.
PROGRAMS = {
    "empty_max": 68, "deberta_loss": 68, "assert_range": 68, "gradscaler": 256, "stale_read": 68, "mask_backward": 128,
    "lstm": 68, "sparse": 68,
}  # fmt: skip


class Values(Case):
    def test_the_program_sees_what_it_sees_on_the_cpu(self):
        _, seen, _ = self.plan("known_values.py")
        self.assertEqual(seen["wrong"], {})
        self.assertGreater(seen["right"], 40)

    @unittest.skipUnless(CASES.is_dir(), "the programs are not here")
    def test_programs_run_to_their_end(self):
        for name, most in PROGRAMS.items():
            with self.subTest(name):
                options = ["--gpu", "H200", "--python", driver.PYTHON, "--format", "json", "--force", "-o", str(self.output)]
                done = driver.run([driver.TIDEMARK, "plan", *options, "--", driver.PYTHON, str(CASES / f"{name}.py")], env=driver.environment())
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                (totals,) = [device for device in self.summary()["devices"] if device["device"] == "cuda:0"]
                self.assertLess(totals["peak_allocated_bytes"], most * MIB)
                if name == "gradscaler":
                    self.assertIn("0 state tensors 16 scale 65536.0", done.stdout.decode() + done.stderr.decode())

    def same_allocations(self, *programs):
        _, known, _ = self.plan("same_allocations.py", *programs)
        _, unknown, _ = self.plan("same_allocations.py", *programs, TIDEMARK_PLAN_VALUES="off")
        self.assertEqual(known, unknown)
        self.assertGreater(known[0], 1000)

    def test_allocations_are_as_without_values(self):
        self.same_allocations("plain", "recomputed", "autocast", "convolutions", "graph")

    def test_arithmetic_has_a_budget(self):
        _, (seconds,), _ = self.plan("much_arithmetic.py")
        _, (without,), _ = self.plan("much_arithmetic.py", TIDEMARK_PLAN_VALUES="off")
        self.assertLess(seconds, 2 * without + 6)


if __name__ == "__main__":
    unittest.main()
