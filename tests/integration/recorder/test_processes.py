"""Recording changes nothing, however a program starts and ends, with or without PyTorch."""

import functools
import re
import subprocess
import unittest

from driver import PROGRAMS, PYTHON, children, program, read_until, real_pytorch, run, start, wait_for
from same_output import ONE, PID, SameOutput


class Processes(SameOutput):
    def test_uncaught_exception(self):
        self.check(program("raises.py"), 1, ONE)
        self.assertEqual(self.sizes().count(8000), 100)  # torch.full((1000,), integer)

    def test_os_exit(self):
        self.check(program("os_exit.py"), 7, ONE)
        self.assertEqual(self.device()["end_allocated_bytes"], 100 * 8000)

    def test_exec_chain(self):
        self.check(program("exec_chain.py"), 0, [r"run\.pid\d+\.2\.tide", PID, "run.tide"])
        order = ["run.tide", self.recordings()[1], self.recordings()[0]]
        for stage, name in enumerate(order):
            self.assertIn(8000 * (stage + 1), self.sizes(name))
        self.assertEqual(len({self.summary(name)["process"]["pid"] for name in order}), 1)

    def test_exec_finishes_the_recording_of_the_program_before(self):
        recorder = self.kill_at_end(start(self.record_command(program("exec_chain.py", "--wait")), stdin=subprocess.PIPE))
        read_until(recorder.stdout, b"stage 2 sum")

        def finished(name):
            return (self.folder / name).exists() and self.summary(name)["data_quality"]["complete"]

        (pid,) = children(recorder.pid)
        for name in ("run.tide", f"run.pid{pid}.tide"):
            wait_for(functools.partial(finished, name), f"the end of {name}")
        self.assertFalse(finished(f"run.pid{pid}.2.tide"), "its program still runs")
        recorder.stdin.close()
        self.assertEqual(recorder.wait(), 0)
        self.assertTrue(finished(f"run.pid{pid}.2.tide"))

    def test_shells_and_helpers_leave_no_file(self):
        self.check(program("subprocesses.py"), 0, [PID, "run.tide"])

    def test_without_torch(self):
        _, ours = self.check(program("no_torch.py"), 0, [])
        self.assertEqual(ours, ["tidemark: nothing was recorded: no process of the program loaded PyTorch\n"])

    @real_pytorch
    def test_torch_imported_only(self):
        _, ours = self.check(program("imports_only.py"), 0, [])
        self.assertEqual(len(ours), 1)
        self.assertIn("nothing was recorded: PyTorch was loaded, but it allocated no tensor memory", ours[0])

    def test_quiet_is_silent(self):
        recorded = self.record_well([PYTHON, "-c", "import torch; torch.ones(10)"], "--quiet")
        self.assertEqual((recorded.stdout, recorded.stderr), (b"", b""))
        self.assertEqual(self.sizes(), [40])

    def test_stdin_passes_through(self):
        text = bytes(range(256)) * 1000
        copy = [PYTHON, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"]
        self.assertEqual(self.record(copy, input=text).stdout, text)

    def test_a_program_that_is_not_there(self):
        for command, code in [(["/nowhere/program"], 127), ([str(PROGRAMS)], 126)]:
            recorded = self.record(command)
            self.assertEqual((recorded.returncode, recorded.stdout), (code, b""))
            self.assertRegex(recorded.stderr.decode(), rf"^tidemark: cannot run {re.escape(command[0])}: [^\n]+\n$")

    def test_the_same_arguments_and_environment(self):
        show = "import os, sys; print(sys.argv, sorted(os.environ), os.getcwd(), os.umask(0))"
        command = [PYTHON, "-c", show, "--", "-o", "--help", "", "a b", "ü"]
        plain, recorded = run(command).stdout.decode(), self.record(command).stdout.decode()
        added = {"LD_PRELOAD", "TIDEMARK_ATTRIBUTE", "TIDEMARK_CLOCK", "TIDEMARK_LIBRARY", "TIDEMARK_SOCKET", "TIDEMARK_STACKS"}
        for name in added:
            recorded = recorded.replace(f"'{name}', ", "").replace(f", '{name}'", "")
        self.assertEqual(recorded, plain)


if __name__ == "__main__":
    unittest.main()
