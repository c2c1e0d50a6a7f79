"""Recording changes nothing: the same output and exit code; and one recording for each process that allocated."""

import functools
import re
import unittest

from driver import PROGRAMS, PYTHON, VARIES, Case, program, run, split_stderr

ONE = ["run.tide"]
PID = r"run\.pid\d+\.tide"

plain_run = functools.lru_cache(run)


class SameOutput(Case):
    def check(self, command, code, files, *options):
        """Runs plain and recorded. `files`: regular expressions of the recordings' names, in order of their names."""
        plain = plain_run(tuple(command))
        recorded = self.record(command, *options)
        self.assertEqual(plain.returncode, code, plain.stderr.decode())
        self.assertEqual(recorded.returncode, code, recorded.stderr.decode())
        self.assertEqual(recorded.stdout, plain.stdout)
        stderr, ours = split_stderr(recorded.stderr)
        self.assertEqual(VARIES.sub(b"", stderr), VARIES.sub(b"", plain.stderr))
        self.assertNotIn(b"\x1b", recorded.stderr)
        # tidemark speaks when all is over, and names each recording.
        self.assertTrue(recorded.stderr.endswith("".join(ours).encode()))
        names = self.recordings()
        self.assertEqual(len(names), len(files), names)
        for name, pattern in zip(names, files):
            self.assertRegex(name, f"^{pattern}$")
        if names:
            self.assertEqual(len(ours), len(names) + 1)
            for name in names:
                self.assertEqual(len([line for line in ours if f"/{name}: " in line]), 1, ours)
                self.assertTrue(self.summary(name)["data_quality"]["complete"], self.summary(name)["data_quality"])
        return plain, ours

    def test_uncaught_exception(self):
        self.check(program("raises.py"), 1, ONE)
        self.assertEqual(self.sizes().count(8000), 100)  # torch.full((1000,), integer)

    def test_os_exit(self):
        self.check(program("os_exit.py"), 7, ONE)
        self.assertEqual(self.device()["end_allocated_bytes"], 100 * 8000)

    def test_threads(self):
        self.check(program("threads.py"), 0, ONE)
        threads = [fields["name"] for kind, fields in self.dump() if kind == "thread"]
        self.assertEqual(len(threads), 16, "4 rounds of 4 threads; the main thread allocates nothing")
        own = [event["size"] for event in self.events() if event["kind"] == "allocate" and event["size"] > 1024]
        self.assertEqual({size: own.count(size) for size in own}, {(64 + n) * 16 * 8: 2000 for n in range(4)})

    def test_dataloader_with_forked_workers(self):
        self.check(program("fork_dataloader.py"), 0, [*[PID] * 4, "run.tide"])
        parent = self.summary()["process"]["pid"]
        for name in self.recordings()[:4]:  # two epochs of two workers
            process = self.summary(name)["process"]
            self.assertEqual((process["parent_pid"], f"run.pid{process['pid']}.tide"), (parent, name))
            # 32 of the 64 items of 32 x 32 integers for each worker of an epoch, in 4 batches of 8
            self.assertEqual(self.sizes(name).count(32 * 32 * 8), 64, "randint and square of 32 items")

    def test_exec_chain(self):
        self.check(program("exec_chain.py"), 0, [r"run\.pid\d+\.2\.tide", PID, "run.tide"])
        order = ["run.tide", self.recordings()[1], self.recordings()[0]]
        for stage, name in enumerate(order):
            self.assertIn(8000 * (stage + 1), self.sizes(name))
        self.assertEqual(len({self.summary(name)["process"]["pid"] for name in order}), 1)

    def test_shells_and_helpers_leave_no_file(self):
        self.check(program("subprocesses.py"), 0, [PID, "run.tide"])

    def test_signal_handlers_that_allocate(self):
        self.check(program("signals.py"), 0, ONE)

    def test_torch_profiler_reports_the_same(self):
        plain, _ = self.check(program("profiler.py"), 0, ONE)
        self.assertGreater(len(re.findall(rb" -?\d+", plain.stdout)), 50, "the program prints what the profiler saw")

    def test_torch_profiler_with_native_stacks(self):
        self.check(program("profiler.py"), 0, ONE, "--stacks", "both")

    def test_without_torch(self):
        _, ours = self.check(program("no_torch.py"), 0, [])
        self.assertEqual(ours, ["tidemark: nothing was recorded: no process of the program loaded PyTorch\n"])

    def test_torch_imported_only(self):
        _, ours = self.check(program("imports_only.py"), 0, [])
        self.assertEqual(len(ours), 1)
        self.assertIn("nothing was recorded: PyTorch was loaded, but it allocated no tensor memory", ours[0])

    def test_failed_request(self):
        self.check(program("oom.py"), 0, ONE)
        failed = self.summary()["out_of_memory"]
        self.assertEqual([(event["device"], event["requested_bytes"]) for event in failed], [("cpu", 1 << 60)])

    def test_ranks(self):
        self.check(program("ranks.py"), 0, ["run.rank0.tide", "run.rank1.tide"])
        for rank, name in enumerate(["run.rank0.tide", "run.rank1.tide"]):
            process = self.summary(name)["process"]
            self.assertEqual([process[key] for key in ("rank", "local_rank", "world_size")], [rank, rank, 2])
            self.assertIn(4000 * (rank + 1), self.sizes(name))  # torch.full((1000 * (rank + 1),), 1.0)

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
