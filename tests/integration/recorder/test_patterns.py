"""The saving of a change by `tidemark patterns` is the saving of the changed program."""

import json
import unittest

from driver import Case, program

KIB = 1 << 10
WEIGHTS = BATCH = HIDDEN = 256 * KIB
LOGITS = SQUARES = 2048 * KIB
LOSS = 4


class Patterns(Case):
    def patterns(self, *arguments):
        self.record_once(program("held_outputs.py", *arguments))
        result = json.loads(self.read("patterns", "--format", "json", self.output))
        self.assertGreaterEqual(result["steps"]["count"], 20)
        (device,) = [device for device in result["devices"] if device["device"] == "cpu"]
        return device, device["kept_into_next_step"]

    def test_saving_is_that_of_the_changed_program(self):
        held, pattern = self.patterns()
        changed, _ = self.patterns("del")
        self.assertEqual(changed["peak_allocated_bytes"], WEIGHTS + BATCH + HIDDEN + LOGITS + SQUARES + LOSS)
        self.assertEqual(held["peak_allocated_bytes"], changed["peak_allocated_bytes"] + LOGITS + LOSS)
        self.assertEqual(pattern["reduced_peak_bytes"], changed["peak_allocated_bytes"])
        self.assertEqual(pattern["avoidable_peak_bytes"], LOGITS + LOSS)
        self.assertEqual(pattern["held_at_peak_bytes"], LOGITS + LOSS)

    def test_the_stacks_are_those_of_the_outputs(self):
        _, pattern = self.patterns()
        at_peak = [row for row in pattern["rows"] if row["held_at_peak_bytes"] != 0]
        self.assertEqual([row["held_at_peak_bytes"] for row in at_peak], [LOGITS, LOSS])
        self.assertEqual({row["stack"]["frames"][-1]["function"] for row in at_peak}, {"model"})

    def test_nothing_to_save_in_the_changed_program(self):
        changed, pattern = self.patterns("del")
        self.assertEqual(pattern["avoidable_peak_bytes"], 0)
        self.assertEqual(pattern["held_at_peak_bytes"], 0)
        self.assertNotIn("model", {row["stack"]["frames"][-1]["function"] for row in pattern["rows"]})
        lifetimes = {part["lifetime"]: part["bytes"] for part in changed["lifetimes_at_peak"]}
        self.assertEqual(sum(lifetimes.values()), changed["peak_allocated_bytes"])


if __name__ == "__main__":
    unittest.main()
