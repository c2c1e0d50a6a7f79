"""Programs under seccomp filters and limits of memory: they end as they do unrecorded."""

import signal
import unittest

from driver import Case, program, run, split_stderr

FILTERED = "a process put itself under a seccomp filter, which may end it for system calls of recording"
FIRST, LATER, OF_THREAD = (list(range(start, start + 10)) for start in (1000, 2000, 3000))


class Limits(Case):
    def end(self, limit, when, stdout=None):
        """The lines of tidemark. The program ended as without it: well, or killed if importing PyTorch makes a refused system call."""
        command = program("sandboxed.py", limit, when)
        plain = run(command)
        if plain.returncode == 1 and b"no seccomp filters here" in plain.stderr:
            self.skipTest("no seccomp filters here")
        done = self.record(command)
        imports = when == "exec"
        self.assertIn(plain.returncode, (0, -signal.SIGSYS) if imports else (0,), plain.stderr.decode())
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout), done.stderr.decode())
        self.killed = plain.returncode != 0
        rest, ours = split_stderr(done.stderr)
        self.assertEqual(rest, b"")
        return ours

    def check_off(self, limit, when):
        ours = self.end(limit, when)
        if not self.killed:
            self.assertEqual(ours, [f"tidemark: not recorded: {FILTERED}\n", f"tidemark: nothing was recorded: {FILTERED}\n"])
        self.assertEqual(self.recordings(), [])

    def check_all_but_the_thread(self, limit):
        self.end(limit, "after")
        self.assertEqual(self.sizes(), FIRST + LATER)
        quality = self.summary()["data_quality"]
        counts = {issue["id"]: issue["count"] for issue in quality["issues"]}
        self.assertEqual((quality["complete"], counts), (False, {"barred_threads": 10, "unmatched_frees": 10}))

    def test_a_filter_that_kills(self):
        self.check_off("kill", "before")
        self.check_off("kill", "exec")
        self.check_off("errno", "before")

    def test_a_filter_that_comes_later(self):
        self.check_all_but_the_thread("kill")

    def test_a_filter_without_tensors(self):
        self.end("kill", "never")

    def test_little_address_space(self):
        """Recording maps little memory."""
        self.end("memory", "before")
        self.assertEqual(self.sizes(), LATER)
        self.assertTrue(self.summary()["data_quality"]["complete"])

    def test_no_address_space_for_a_thread(self):
        self.check_all_but_the_thread("little")


if __name__ == "__main__":
    unittest.main()
