"""Programs that close descriptors, fork among threads, start hundreds of threads or leave processes behind."""

import os
import unittest
from pathlib import Path

from driver import Case, program, real_pytorch, split_stderr, wait_for

CHILD = r"run\.pid\d+\.tide"
LANES = 512  # threads that can be recorded at once, see src/collect/ring/layout.h


class Edges(Case):
    def check(self, name, stdout, *files):
        """Runs to its normal end with this output. `files`: the recordings beside run.tide, as regular expressions."""
        done = self.record_well(program("edges.py", name))
        self.assertEqual(done.stdout.decode(), stdout)
        self.assertEqual(split_stderr(done.stderr)[0], b"")
        names = self.recordings()
        self.assertEqual(len(names), 1 + len(files), names)
        for file, pattern in zip(names, [*files, r"run\.tide"]):
            self.assertRegex(file, f"^{pattern}$")

    def children_sizes(self):
        """The allocations of each process but the first, sorted."""
        return sorted(self.sizes(name) for name in self.recordings() if name != "run.tide")

    def check_complete(self):
        for name in self.recordings():
            self.assertTrue(self.summary(name)["data_quality"]["complete"], self.summary(name)["data_quality"])

    def test_closed_descriptors(self):
        self.check("closed_descriptors", f"{list(range(3, 11))} {['/dev/null'] * 8} 10\n")
        self.assertEqual(self.sizes(), list(range(1000, 1010)))
        self.check_complete()

    def test_cleared_environment(self):
        self.check("cleared_environment", "0 10 {}\n", CHILD)
        self.assertEqual(self.sizes(), list(range(1000, 1010)))
        self.assertEqual(self.children_sizes(), [list(range(2000, 2010))])
        self.check_complete()

    @real_pytorch
    def test_fork_while_others_allocate(self):
        self.check("fork_while_others_allocate", f"{list(range(10))}\n", *[CHILD] * 10)
        expected = [list(range(first, first + 50)) for first in range(100_000, 1_100_000, 100_000)]
        self.assertEqual(self.children_sizes(), expected)
        self.check_complete()

    def test_generations(self):
        """The sixth and last only frees blocks of its parent: it gets no file."""
        output = "".join(f"generation {number}: 5\n" for number in reversed(range(6)))
        self.check("generations", output, *[CHILD] * 5)
        self.assertEqual(self.sizes(), list(range(1000, 1005)))
        self.assertEqual(self.children_sizes(), [list(range(first, first + 5)) for first in range(2000, 7000, 1000)])
        self.check_complete()

    def test_more_threads_than_lanes(self):
        self.check("many_threads", f"{sum(range(1000, 1600))}\n")
        sizes = self.sizes()
        self.assertEqual(len(sizes), LANES)
        self.assertEqual(len(set(sizes)), LANES)
        self.assertLessEqual(set(sizes), set(range(1000, 1600)))
        quality = self.summary()["data_quality"]
        (issue,) = quality["issues"]
        self.assertEqual((quality["complete"], issue["id"], issue["count"]), (False, "thread_limit", 600 - LANES))

    def test_threads_left_in_the_middle(self):
        self.check("left_threads", "1000\n")
        self.assertEqual([size for size in self.sizes() if size >= 5000], list(range(5000, 6000)))
        self.check_complete()

    def test_multiprocessing(self):
        self.check("multiprocessing_methods", "spawn 6000\nforkserver 6000\n", CHILD)
        sizes = [self.sizes(name) for name in self.recordings()]
        self.assertEqual([one.count(8000) for one in sizes], [4, 4], "four tensors for each of two ways to start")
        self.check_complete()

    def test_interrupted(self):
        self.check("interrupted", "1000\n")
        self.assertEqual(self.sizes(), list(range(1000, 2000)) * 50)
        self.check_complete()

    def test_a_child_outlives_the_program(self):
        go = self.folder / "go"
        done = self.record(program("edges.py", "outlives", go))
        self.assertEqual((done.returncode, done.stdout), (0, b"10\n"), done.stderr.decode())
        pid = int(Path(f"{go}.pid").read_text())
        self.assertIn(f"process {pid} is still running: its recording", done.stderr.decode())
        self.assertEqual(self.sizes(), list(range(1000, 1010)))
        self.assertEqual(self.sizes(f"run.pid{pid}.tide"), list(range(2000, 2010)))
        self.assertIn("stopped_early", self.issue_ids(f"run.pid{pid}.tide"))
        go.touch()
        wait_for(lambda: go.read_text(), "the child to go on without a recorder")
        self.assertEqual(go.read_text(), "20\n")
        wait_for(lambda: not os.path.exists(f"/proc/{pid}") or state(pid) == "Z", "the child to end")


def state(pid):
    """The letter of the process's state."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


if __name__ == "__main__":
    unittest.main()
