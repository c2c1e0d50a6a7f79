"""The program controls its recording; the collector is loaded late, twice, or beside other preloaded libraries."""

import json
import os
import shutil
import unittest

from driver import PYTHON, Case, environment, program, real_pytorch, run

BYSTANDER = os.environ["TIDEMARK_TEST_BYSTANDER"]
LIBRARY = os.environ["TIDEMARK_PRELOAD"]


def sequence(*firsts):
    return [first + n for first in firsts for n in range(10)]


class Control(Case):
    @real_pytorch
    def test_pause_and_resume(self):
        recorded = self.record_well(program("control.py"))
        self.assertEqual(recorded.stdout, b"kept %d\n" % sum(sequence(1001, 2001, 2101, 3001)[5:]))
        events = self.events()
        self.assertEqual([event["size"] for event in events if event["kind"] == "allocate"], sequence(1001, 3001, 3101))
        kinds = [event["kind"] for event in events]
        first_after = next(index for index, event in enumerate(events) if event.get("size") == 3001)
        self.assertEqual((kinds.count("pause"), kinds.count("resume")), (1, 1))
        self.assertEqual(kinds[9:first_after], ["allocate", "pause", "resume"])
        quality = self.summary()["data_quality"]
        self.assertTrue(quality["complete"], "the program did not want more")
        self.assertEqual([issue["id"] for issue in quality["issues"]], ["paused"])
        (pause,) = json.loads(self.read("timeline", "--format", "json", self.output))["pauses"]
        times = [event["time_ns"] for event in events if event["kind"] in ("pause", "resume")]
        self.assertEqual([pause["begin_ns"], pause["end_ns"]], times)
        # Five of the first ten were freed unrecorded; the last ten were freed while recorded.
        self.assertEqual(self.device()["end_block_count"], 20)

    def test_started_paused(self):
        self.record_well(program("control.py"), "--paused")
        self.assertEqual(self.sizes(), sequence(3001, 3101))
        self.assertTrue(self.summary()["data_quality"]["complete"])

    def test_paused_to_the_end(self):
        recorded = self.record_well([PYTHON, "-c", "import torch; torch.ones(3)"], "--paused")
        self.assertEqual(self.recordings(), [])
        self.assertIn(b"recording began paused, and no process that loaded PyTorch called tidemark_resume()", recorded.stderr)

    def test_the_functions_are_absent_without_recording(self):
        self.assertEqual(
            run([PYTHON, "-c", "import ctypes; print(hasattr(ctypes.CDLL(None), 'tidemark_pause'))"]).stdout, b"False\n"
        )

    def check_attached(self, *options):
        recorded = self.record_well(program("control.py", "--attach"), "--manual", *options)
        kept = sum(sequence(2001, 2101, 3001))
        self.assertEqual(recorded.stdout.decode().splitlines(), ["slots True True", f"kept {kept}"])
        self.assertEqual(self.sizes(), sequence(3001, 3101))
        frees = [event["size"] for event in self.events() if event["kind"] == "free"]
        self.assertEqual(sorted(frees), sequence(3101))

    def test_attached_later(self):
        """As in a notebook: PyTorch is loaded and in use when the collector is loaded."""
        self.check_attached()
        stacks = {tuple(function.rsplit(".", 1)[-1] for function, _, _ in stack) for stack in self.stacks()}
        in_main = ("<module>", "allocate", "<genexpr>")
        in_thread = ("_bootstrap", "_bootstrap_inner", "run", "allocate", "<genexpr>")
        self.assertEqual(stacks, {in_main, in_thread})

    @real_pytorch
    def test_attached_later_with_both_stacks(self):
        self.check_attached("--stacks", "both")
        for stack in self.stacks():
            self.assertEqual({function is None for function, _, _ in stack}, {True, False}, "Python and native frames")

    def test_manual_without_attaching(self):
        recorded = self.record_well([PYTHON, "-c", "import torch; print(torch.ones(3).sum().item())"], "--manual")
        self.assertEqual(recorded.stdout, b"3.0\n")
        self.assertEqual(self.recordings(), [])
        self.assertIn(b"tidemark: nothing was recorded: ", recorded.stderr)

    def check_once(self, recorded, *firsts):
        self.assertEqual(recorded.returncode, 0, recorded.stderr.decode())
        self.assertEqual(self.recordings(), ["run.tide"])
        self.assertEqual(self.sizes(), sequence(*firsts))
        self.assertTrue(self.summary()["data_quality"]["complete"])

    def test_preloaded_and_attached(self):
        self.check_once(self.record(program("control.py", "--attach")), 2001, 2101, 3001, 3101)

    def test_preloaded_twice(self):
        self.check_once(
            self.record(program("control.py", "--attach"), env=environment(LD_PRELOAD=LIBRARY)), 2001, 2101, 3001, 3101
        )

    def test_a_copy_preloaded_too(self):
        """Two libraries for the loader: only one of them may record, even if the program then attaches one of them."""
        copy = shutil.copy(LIBRARY, self.folder / "libcopy.so")
        for options in ([], ["--attach"]):
            done = self.record(program("control.py", *options), "--force", env=environment(LD_PRELOAD=copy))
            if options:
                self.check_once(done, 2001, 2101, 3001, 3101)
            else:
                self.assertEqual((done.returncode, self.sizes()), (0, sequence(1001, 3001, 3101)))

    def test_a_copy_attached(self):
        """As if a package loaded its own copy into a program that is being recorded."""
        copy = shutil.copy(LIBRARY, self.folder / "libcopy.so")
        command = ["/usr/bin/env", f"TIDEMARK_LIBRARY={copy}", *program("control.py", "--attach")]
        self.check_once(self.record(command), 2001, 2101, 3001, 3101)

    def test_other_preloaded_libraries_stay(self):
        call = "import ctypes, torch; torch.empty(77, dtype=torch.uint8); print(ctypes.CDLL(None).tidemark_test_bystander())"
        recorded = self.record_well([PYTHON, "-c", call], env=environment(LD_PRELOAD=BYSTANDER))
        self.assertEqual(recorded.stdout, b"4711\n")
        self.assertEqual(self.sizes(), [77])


if __name__ == "__main__":
    unittest.main()
