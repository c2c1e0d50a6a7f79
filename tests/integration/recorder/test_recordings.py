"""Content of the recordings of real programs: memory held by their tensors, the process, its ranks."""

import json
import os
import stat
import unittest

from driver import ALLOCATE, PYTHON, program, run
from holding import Holding


class Recordings(Holding):
    def test_held_with_both_stacks(self):
        self.check_held("both")

    def test_what_the_recording_says_about_the_process(self):
        self.record_well(ALLOCATE, umask=0)
        self.assertEqual(stat.S_IMODE(self.output.stat().st_mode), 0o600, "for its owner only, whatever the umask")
        process = self.summary()["process"]
        probe = "import sys, torch; print('%d.%d.%d' % sys.version_info[:3], torch.__version__)"
        python, torch = run([PYTHON, "-c", probe]).stdout.decode().split()
        self.assertEqual(process["python_version"], python)
        self.assertEqual(process["torch_version"].split("+")[0], torch.split("+")[0].split("a")[0])
        self.assertEqual(process["command_line"], " ".join(ALLOCATE))
        self.assertEqual(process["hostname"], os.uname().nodename)
        self.assertEqual((process["rank"], process["local_rank"], process["world_size"]), (None, None, None))

    def test_torchrun(self):
        # -r and -t: torchrun of PyTorch 1.13 cannot read its own defaults ("0") on Python 3.11; rank 9 does not exist.
        # A port of its own: the usual one may be in use, and --standalone takes no other there.
        launch = [PYTHON, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-r", "9:1", "-t", "9:1"]
        meeting = ["--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0"]
        recorded = self.record_well([*launch, *meeting, program("rank.py")[1]])
        self.assertEqual(sorted(recorded.stdout.splitlines()), [b"rank 0 sum 1000", b"rank 1 sum 2000"])
        self.assertEqual(self.recordings(), ["run.rank0.tide", "run.rank1.tide"], "and none of the launcher")
        paths = [str(self.folder / name) for name in self.recordings()]
        both = json.loads(self.read("summary", "--format", "json", *paths))["recordings"]
        self.assertEqual([part["file"] for part in both], paths)
        for part, rank in zip(both, (0, 1)):
            process = part["process"]
            self.assertEqual((process["rank"], process["local_rank"], process["world_size"]), (rank, rank, 2))
            (cpu,) = part["devices"]
            self.assertGreaterEqual(cpu["peak_allocated_bytes"], 4000 * (rank + 1))
            self.assertIn(4000 * (rank + 1), self.sizes(os.path.basename(part["file"])))


if __name__ == "__main__":
    unittest.main()
