"""A job of two ranks with a leak on one of them: the verdict names it and the step, and a run with the change survives."""

import json
import unittest
from pathlib import Path

from phantom import Case, driver

MEMORY = "2120MiB"  # of each GPU, of which the context and cuBLAS, and NCCL with 840 MiB, take 1,693 MiB


class Restart(Case):
    def train(self, *arguments):
        """What the ranks said: the step of the failure, or how many steps they made."""
        program = [driver.PYTHON, str(Path(__file__).with_name("dying_rank.py")), *arguments]
        options = ["--gpu", "H200", "--devices", "2", "--memory", MEMORY, "--steps", "0", "--python", driver.PYTHON]
        done = driver.run([driver.TIDEMARK, "plan", *options, "--format", "json", "--force", "-o", str(self.output), "--", *program])
        said = [line for line in done.stderr.decode().splitlines() if line.startswith("[")]
        self.assertTrue(said, done.stderr.decode())
        return json.loads(said[-1])

    def verdict(self, *options):
        return json.loads(self.read("restart", "--format", "json", *options))

    def test_a_leak_on_one_rank(self):
        said = self.train("--leak")
        self.assertIn("failed_at_step", said[1], said)
        verdict = self.verdict(self.folder)
        self.assertEqual(verdict["first"]["rank"], 1)
        self.assertEqual((verdict["will_recur"], verdict["reason"]), ("yes", "leak"))
        self.assertEqual(verdict["at_step"], said[1]["failed_at_step"])
        self.assertLessEqual(verdict["earliest_step"], said[1]["failed_at_step"])
        self.assertGreaterEqual(verdict["latest_step"], said[1]["failed_at_step"])
        self.assertEqual({rank["rank"]: rank["end"] for rank in verdict["ranks"]}, {0: "no_failure", 1: "out_of_memory"})
        self.assertEqual(verdict["missing_ranks"], [])
        # Each kept output: the batch of 1,024 samples with 1,024 values of 4 bytes.
        self.assertEqual(verdict["evidence"]["leak_bytes_per_step"], 1024 * 1024 * 4)
        self.assertEqual((verdict["changes"][0]["detail"], verdict["changes"][0]["enough"]), ("stop_leak", True))
        without = self.train("--steps", str(2 * verdict["latest_step"]))
        self.assertEqual([rank["steps"] for rank in without], 2 * [2 * verdict["latest_step"]])


if __name__ == "__main__":
    unittest.main()
