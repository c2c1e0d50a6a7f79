"""Host memory that grows and is not tensors: `leaks` reports it, with the process. See host_growth.py."""

import json
import re
import unittest

from driver import TIDEMARK, Case, program, real_pytorch, start

MIB = 1 << 20
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class HostGrowth(Case):
    def grow(self, case):
        """The first ten lines of `leaks`, and the program's own values."""
        done = self.record_well(program("host_growth.py", case), "--force", "--sample-interval", "100ms")
        return "\n".join(self.read("leaks", self.output).decode().splitlines()[:10]), json.loads(done.stdout)["grown_bytes"]

    @real_pytorch
    def test_objects(self):
        text, grown = self.grow("history_of_objects")
        self.assertIn("No leak", text)
        found = re.search(r"Host memory of the process grows by .*, from ([\d.]+) (\wiB) at .* to ([\d.]+) (\wiB) at .* tensors on the CPU are 0 B of it", text)
        self.assertTrue(found, text)
        first, last = (float(found[n]) * SIZES[found[n + 1]] for n in (1, 3))
        # The program counts from its 11th step to its end, `leaks` from the 16th to the last.
        self.assertAlmostEqual(last - first, grown, delta=0.15 * grown)

    @real_pytorch
    def test_cache_that_fills_up(self):
        self.assertNotIn("Host memory", self.grow("cache_that_fills_up")[0])

    @real_pytorch
    def test_workers(self):
        cases = ("pages_copied_by_workers", "caches_of_workers")
        files = {case: self.folder / f"{case}.tide" for case in cases}
        started = [
            self.kill_at_end(start([TIDEMARK, "run", "-o", str(file), "--", *program("host_growth.py", case)])) for case, file in files.items()
        ]
        for recording in started:
            recording.communicate()
            self.assertEqual(recording.returncode, 0)
        for case, file in files.items():
            with self.subTest(case):
                lines = self.read("leaks", file).decode().splitlines()[:10]
                self.assertRegex(lines[0], r"Host memory \(PSS\) of the job's other processes grows by")
                self.assertIn("No leak", "\n".join(lines))


if __name__ == "__main__":
    unittest.main()
