"""Shared by the drivers of programs that hold tensors at their end."""

import json

from driver import Case, program


class Holding(Case):
    def check_held(self, stacks):
        """held.py prints how many bytes in how many blocks its tensors hold at exit."""
        recorded = self.record_well(program("held.py"), "--stacks", stacks)
        said = json.loads(recorded.stdout)
        device = self.device()
        self.assertEqual(device["end_allocated_bytes"], said["held_bytes"])
        self.assertEqual(device["end_block_count"], said["held_blocks"])
        self.assertEqual(device["allocation_count"], 2000)
        self.assertEqual(device["allocation_count"] - device["free_count"], said["held_blocks"])
        self.assertEqual(device["unmatched_free_count"], 0)
        self.assertGreaterEqual(device["peak_allocated_bytes"], said["held_bytes"])
        self.assertLessEqual(device["peak_allocated_bytes"], said["held_bytes"] + said["largest_bytes"])
        self.assertEqual(self.summary()["process"]["stack_mode"], stacks)
        frames = [fields["kind"] for kind, fields in self.dump() if kind == "location"]
        expected = {"none": set(), "both": {"python", "native"}}.get(stacks, {stacks})
        self.assertEqual(set(frames), expected)
        without = [event for event in self.events() if event["kind"] == "allocate" and event["stack"] is None]
        self.assertEqual(len(without), 2000 if stacks == "none" else 0)
