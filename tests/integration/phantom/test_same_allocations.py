"""What a plan computes leaves the allocations of compiled programs, and of ranks, as they are."""

import unittest
from pathlib import Path

from phantom import Case


class SameAllocations(Case):
    def same(self, *program):
        _, known, _ = self.plan(*program)
        _, unknown, _ = self.plan(*program, TIDEMARK_PLAN_VALUES="off")
        self.assertEqual(known, unknown)

    def test_compiled(self):
        self.same("same_allocations.py", "compiled")

    def test_ranks(self):
        self.same("rank_launcher.py", str(Path(__file__).with_name("same_allocations.py")), "ranks")


if __name__ == "__main__":
    unittest.main()
