"""PyTorch's allocator on the phantom: what Tidemark records is what PyTorch counts, to the byte."""

import json
import unittest

from phantom import GIB, MIB, PROFILE, Case

PARTS = ("graph", "pinned", "streams", "peers", "out_of_memory")


class Allocator(Case):
    profile = PROFILE | {"devices": 2}

    def run_parts(self, *parts, settings=""):
        """Both names of the variable: PyTorch before 2.9 reads the first alone."""
        result, stderr = self.record_program(
            "allocator.py", *parts, PYTORCH_CUDA_ALLOC_CONF=settings, PYTORCH_ALLOC_CONF=settings
        )
        self.assertNotIn("has no answer", stderr)
        self.assertEqual(result["name"], PROFILE["name"])
        return result

    def check_parts(self, result):
        """What the parts say does not depend on the allocator's settings."""
        self.assertEqual(result["pinned"]["sum"], result["pinned"]["expected"])
        self.assertEqual(result["streams"], {"different": True, "done": True, "timed": True})
        self.assertEqual(result["peers"]["sum"], sum(range(1000)))
        self.assertEqual(result["peers"]["total"], PROFILE["memory"])

    def check_counters(self, result):
        """The recording against memory_stats() and _snapshot()."""
        for number, counters in enumerate(result["counters"]):
            recorded = self.device(device=f"cuda:{number}")
            self.assertEqual(recorded["peak_allocated_bytes"], counters["allocated_bytes"]["peak"])
            self.assertEqual(recorded["peak_reserved_bytes"], counters["reserved_bytes"]["peak"])
            self.assertEqual(recorded["end_reserved_bytes"], counters["reserved_bytes"]["current"])
            self.assertEqual(recorded["total_allocated_bytes"], counters["allocated_bytes"]["allocated"])
            self.assertEqual(recorded["allocation_count"], counters["allocation"]["allocated"])
            snapshot = result["snapshot"][number]
            self.assertEqual(snapshot["reserved"], counters["reserved_bytes"]["current"])
            self.assertEqual(snapshot["allocated"], counters["allocated_bytes"]["current"])
        self.assertEqual(self.issue_ids(), set())

    def test_default_settings(self):
        result = self.run_parts(*PARTS)
        self.check_parts(result)
        self.check_counters(result)
        # The private pool of the two graphs, and the usual one.
        self.assertEqual(result["graph"], {"pools": 2})
        # The driver counts the context and the segments.
        self.assertEqual(
            result["peers"]["used"], PROFILE["context"] + result["counters"][1]["reserved_bytes"]["current"]
        )
        limited, full = result["out_of_memory"]
        self.assertIn("Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 139.81 GiB", limited)
        self.assertIn("1.40 GiB allowed", limited)
        self.assertIn("Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.81 GiB", full)
        self.assertIn("Including non-PyTorch memory, this process has 13", full)
        self.assertNotIn("allowed", full)
        self.assertEqual(self.device(device="cuda:0")["out_of_memory_count"], 2)
        self.check_explanation()

    def check_explanation(self):
        explained = json.loads(self.read("explain", "--format", "json", self.output))
        requests = sorted(failure["request"]["bytes"] for failure in explained["failures"])
        self.assertEqual(requests, [256 * MIB, 8 * GIB])

    def test_expandable_segments(self):
        result = self.run_parts(*PARTS, settings="expandable_segments:True")
        self.check_parts(result)
        self.check_counters(result)

    def test_asynchronous_allocator(self):
        """The driver's pool hands out memory, and PyTorch tells no hook of it."""
        result = self.run_parts(*PARTS, settings="backend:cudaMallocAsync")
        self.check_parts(result)
        limited, full = result["out_of_memory"]
        self.assertIn("PyTorch limit (set by user-supplied memory fraction)", limited)
        self.assertIn("Requested               : 8.00 GiB", full)
        # Pools grow by 32 MiB.
        self.assertEqual(result["counters"][1]["reserved_bytes"]["peak"] % (32 * MIB), 0)


if __name__ == "__main__":
    unittest.main()
