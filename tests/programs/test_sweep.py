"""The largest value that fits is the one that plans of their own say."""

import json
import unittest

from driver import PYTHON, TIDEMARK, Case, program, run

HAS_CUDA = run([PYTHON, "-c", "import torch; print(torch.version.cuda)"]).stdout != b"None\n"
MEMORY = ("--gpu", "H200", "--memory", "4GiB")


@unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
class Sweep(Case):
    def test_the_largest_value_that_fits(self):
        command = program("varied.py", "--fail")
        done = run([TIDEMARK, "plan", *MEMORY, "--margin", "0%", "--format", "json", "--fit", "batch=--batch-size=1..1024", "--", *command])
        self.assertEqual(done.returncode, 0, done.stderr)
        fit = json.loads(done.stdout)["fit"]
        values = [trial["value"] for trial in fit["trials"]]
        self.assertEqual((values[:2], fit["memory_bytes"], fit["limit_bytes"]), ([1, 4], 4 << 30, 4 << 30))
        self.assertLessEqual(len(values), 8, values)
        largest = fit["largest"]
        for value, fits in {largest: True, largest + 1: False}.items():
            done = run([TIDEMARK, "plan", *MEMORY, "--format", "json", "-f", "-o", str(self.output), "--", *command, "--batch-size", str(value)])
            self.assertEqual(done.returncode, 0 if fits else 1, done.stderr)
            (device,) = json.loads(done.stdout)["devices"]
            trial = next(trial for trial in fit["trials"] if trial["value"] == value)
            for key in ("fits", "peak_allocated_bytes", "peak_reserved_bytes", "device_used_bytes"):
                self.assertEqual(trial[key], device[key], key)

    def test_what_cannot_be_varied(self):
        for options, message in {
            ("--fit", "batch=--batch-size=8..1"): "an empty range",
            ("--fit", "batch", "-o", "x.tide"): "--fit keeps no recording",
        }.items():
            done = run([TIDEMARK, "plan", *MEMORY, *options, "--", *program("varied.py", "--fail")])
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertIn(message, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
