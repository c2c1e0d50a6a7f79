"""scripts/pytorch_suites.py compares every test, also after one in which the process dies. No PyTorch and no Tidemark are needed."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "pytorch_suites.py"
# Replaces tidemark: runs the program, which can see that it is recorded.
TIDEMARK = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
RECORDED=1 exec "$@"
"""
HEADER = "import os, signal, time, unittest\n\nRECORDED = 'RECORDED' in os.environ\n\n\nclass T(unittest.TestCase):\n"


class PytorchSuites(unittest.TestCase):
    def compare(self, *options, **tests):
        """Exit code and output for a suite of one class, whose tests are given as name="body"."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "expecttest.py").touch()  # a dependency of PyTorch's test library
            bodies = [f"    def test_{name}(self):\n        {body}\n" for name, body in tests.items()]
            (root / "suite.py").write_text(HEADER + "".join(bodies))
            (root / "tidemark").write_text(TIDEMARK)
            (root / "tidemark").chmod(0o755)
            command = [sys.executable, "-B", SCRIPT, "--python", sys.executable, "--tidemark", root / "tidemark",
                       "--tests", root, "--only", "suite", "--results", root / "results", *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr.replace("   0 recordings, 0 of them complete, 0 events\n", ""), "")
            return done.returncode, done.stdout

    def test_goes_on_behind_a_test_that_dies(self):
        code, output = self.compare(a="pass", b="os.abort()", c="self.fail()", d="os._exit(0)", e="pass")
        self.assertIn("suite: 5 tests (2 passed, 1 died (SIGABRT), 1 failed, 1 died (exit code 0)), ", output)
        self.assertIn("5 tests, 0 changed by recording, 0 unsteady, 0 did not run in the time limit\n", output)
        self.assertEqual(code, 0)

    def test_goes_on_behind_a_test_that_hangs(self):
        limited = "self.assertTrue(0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 50)"
        code, output = self.compare("--test-limit", "50", a=f"{limited}; signal.raise_signal(signal.SIGALRM)", b="pass")
        self.assertIn("suite: 2 tests (1 timed out, 1 passed), ", output)
        self.assertEqual(code, 0)

    def test_death_by_recording_is_a_change(self):
        code, output = self.compare(a="pass", b="RECORDED and os.kill(os.getpid(), signal.SIGSEGV)", c="pass")
        died = "plain passed, recorded died (SIGSEGV)"
        self.assertIn(f"   changed: suite.T.test_b: {died}; again: {died}\n", output)
        self.assertIn("3 tests, 1 changed by recording, 0 unsteady, ", output)
        self.assertEqual(code, 1)

    def test_a_suite_in_which_nothing_passes_compares_nothing(self):
        code, output = self.compare(a="self.fail()")
        self.assertIn("suite: no test passed without recording; ", output)
        self.assertEqual(code, 2)

    def test_another_outcome_once_is_unsteady(self):
        once = "os.path.exists('ran') or not RECORDED or (open('ran', 'w').close(), self.skipTest(''))"
        code, output = self.compare(a=once, b="pass")
        self.assertIn("   unsteady: suite.T.test_a: plain passed, recorded skipped; again: plain passed, recorded passed\n", output)
        self.assertEqual(code, 0)

    def test_says_what_the_time_limit_cut(self):
        for limit in ("4", "16", "64"):  # a busy machine may need longer to come to the first test
            code, output = self.compare("--time-limit", limit, a="pass", b="time.sleep(600)", c="pass")
            if output.startswith("suite: 1 tests"):
                break
        self.assertIn("1 tests, 0 changed by recording, 0 unsteady, 2 did not run in the time limit\n", output)
        self.assertEqual(code, 0)


if __name__ == "__main__":
    unittest.main()
