"""Recording changes nothing: the same output and exit code; and one recording for each process that allocated."""

import re
import unittest

from driver import program
from same_output import ONE, SameOutput


class OfPyTorch(SameOutput):
    def test_torch_profiler_reports_the_same(self):
        plain, _ = self.check(program("profiler.py"), 0, ONE)
        self.assertGreater(len(re.findall(rb" -?\d+", plain.stdout)), 50, "the program prints what the profiler saw")

    def test_torch_profiler_with_native_stacks(self):
        self.check(program("profiler.py"), 0, ONE, "--stacks", "both")

    def test_failed_request(self):
        self.check(program("oom.py"), 0, ONE)
        failed = self.summary()["out_of_memory"]
        self.assertEqual([(event["device"], event["requested_bytes"]) for event in failed], [("cpu", 1 << 60)])


if __name__ == "__main__":
    unittest.main()
