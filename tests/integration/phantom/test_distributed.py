"""NCCL between two processes: exchanged data arrives, and DDP and FSDP2 run on it."""

import unittest
from pathlib import Path

from phantom import Case


class Distributed(Case):
    def test_two_ranks(self):
        shared = Path("/dev/shm")
        before = set(shared.glob("tidemark-nccl-*"))
        _, ranks, _ = self.plan("ranks.py")
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1])
        self.assertEqual(set(shared.glob("tidemark-nccl-*")) - before, set())
        for rank in ranks:
            self.check_collectives(rank["rank"], rank["collectives"])
            # FSDP2 keeps half of the four layers on each rank.
            self.assertEqual(rank["local_elements"], 4 * 1024 * 1024 // 2)
        self.assertEqual(ranks[0]["peak_allocated"], ranks[1]["peak_allocated"])
        # A recording for each rank, and each has its own device.
        recorded = {}
        for name in self.recordings():
            for device in self.summary(name)["devices"]:
                if device["device"].startswith("cuda"):
                    recorded[device["device"]] = (device["peak_allocated_bytes"], device["peak_reserved_bytes"])
        self.assertEqual(
            recorded, {f"cuda:{rank['rank']}": (rank["peak_allocated"], rank["peak_reserved"]) for rank in ranks}
        )

    def check_collectives(self, rank, found):
        averages = {name: value for name, value in found.items() if name.startswith("average ")}
        self.assertEqual(len(averages), 4)
        self.assertEqual(set(map(tuple, averages.values())), {(2.0, -0.25)})
        others = {name: value for name, value in found.items() if name not in averages}
        expected = {
            "sum": [2 + 3, 10 + 9],
            "max": [3, 10],
            "product": [2 * 3, 10 * 9],
            "broadcast": [7, 8],
            "all_gather": [0, 5, 1, 6],
            "reduce_scatter": [2 * (2 * rank + 1), 2 * (2 * rank + 2)],
            "all_to_all": [rank, rank + 2],
            "received": [1 - rank + 40],
            "alone": [rank + 1],
        }
        self.assertEqual(others, expected)


if __name__ == "__main__":
    unittest.main()
