"""The flight recorder and a full GPU: the dump contains the failed request, and the reason is printed below the traceback."""

import subprocess
import unittest
from pathlib import Path

from phantom import Case, driver

BLOCK = 1 << 30


class Keep(Case):
    def command(self, *arguments):
        """On the phantoms of a plan: the planned program is tidemark run."""
        inner = driver.PYTHON, str(Path(__file__).with_name("keep.py")), *arguments
        keep = [driver.TIDEMARK, "run", "-o", str(self.output), "--keep", "60s", "--", *inner]
        plan = ["plan", "--gpu", "H200", "--devices", "2", "--steps", "0", "--python", driver.PYTHON]
        plan += ["-o", str(self.folder / "plan.tide")]
        return [driver.TIDEMARK, *plan, "--", *keep]

    def check_dump(self, name, device):
        (oom,) = [event for event in self.events(name) if event["kind"] == "out_of_memory"]
        self.assertEqual(oom["size"], BLOCK)
        device = self.device(name, device)
        self.assertEqual(device["out_of_memory_count"], 1)
        self.assertEqual(device["peak_allocated_bytes"] % BLOCK, 0)
        self.assertGreater(device["peak_allocated_bytes"], 130 << 30)

    def test_one_rank_of_two_ends(self):
        done = driver.run(self.command("--ranks"))
        lines = done.stderr.decode().splitlines()
        (error,) = [index for index, line in enumerate(lines) if "OutOfMemoryError" in line]
        ours = [line for line in lines[error + 1 :] if line.startswith("tidemark: ")]
        first = next(index for index, line in enumerate(ours) if "Out of memory on cuda:1: 1.0 GiB requested" in line)
        self.assertIn("more than available", ours[first])
        self.assertIn("run.rank1.tide`", ours[first])
        self.assertIn("requested by fill (", ours[first + 1])
        self.assertTrue(any("100.0%" in line and "fill (" in line for line in ours), ours)
        for rank in (0, 1):
            self.assertTrue(any(f"run.rank{rank}.tide: the last " in line for line in ours), ours)
        self.check_dump("run.rank1.tide", "cuda:1")
        other = self.device("run.rank0.tide", "cuda:0")
        self.assertEqual((other["peak_allocated_bytes"], other["out_of_memory_count"]), (3 * BLOCK, 0))

    def test_the_program_goes_on(self):
        process = self.kill_at_end(driver.start(self.command("--survive"), stdin=subprocess.PIPE))
        said = driver.read_until(process.stderr, b"run.tide: the last ")
        self.assertIn(b"Out of memory on cuda:0: 1.0 GiB requested", said)
        self.check_dump("run.tide", "cuda:0")
        process.stdin.close()
        process.stderr.read()
        process.wait()
        self.assertFalse((self.folder / "run.2.tide").exists())


if __name__ == "__main__":
    unittest.main()
