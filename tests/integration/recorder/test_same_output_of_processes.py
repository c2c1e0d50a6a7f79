"""Recording changes nothing in programs with threads, signals and several processes, for every version of PyTorch."""

import unittest

from driver import program, real_pytorch
from same_output import ONE, PID, SameOutput


class OfProcesses(SameOutput):
    def test_threads(self):
        self.check(program("threads.py"), 0, ONE)
        threads = [fields["name"] for kind, fields in self.dump() if kind == "thread"]
        self.assertEqual(len(threads), 16, "4 rounds of 4 threads; the main thread allocates nothing")
        own = [event["size"] for event in self.events() if event["kind"] == "allocate" and event["size"] > 1024]
        self.assertEqual({size: own.count(size) for size in own}, {(64 + n) * 16 * 8: 2000 for n in range(4)})

    @real_pytorch
    def test_dataloader_with_forked_workers(self):
        self.check(program("fork_dataloader.py"), 0, [*[PID] * 4, "run.tide"])
        parent = self.summary()["process"]["pid"]
        for name in self.recordings()[:4]:  # two epochs of two workers
            process = self.summary(name)["process"]
            self.assertEqual((process["parent_pid"], f"run.pid{process['pid']}.tide"), (parent, name))
            # 32 of the 64 items of 32 x 32 integers for each worker of an epoch, in 4 batches of 8
            self.assertEqual(self.sizes(name).count(32 * 32 * 8), 64, "randint and square of 32 items")

    def test_signal_handlers_that_allocate(self):
        self.check(program("signals.py"), 0, ONE)

    @real_pytorch
    def test_ranks(self):
        self.check(program("ranks.py"), 0, ["run.rank0.tide", "run.rank1.tide"])
        for rank, name in enumerate(["run.rank0.tide", "run.rank1.tide"]):
            process = self.summary(name)["process"]
            self.assertEqual([process[key] for key in ("rank", "local_rank", "world_size")], [rank, rank, 2])
            self.assertIn(4000 * (rank + 1), self.sizes(name))  # torch.full((1000 * (rank + 1),), 1.0)


if __name__ == "__main__":
    unittest.main()
