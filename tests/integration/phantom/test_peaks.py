"""Memory that a recorded program took of a device between two samples of a monitor is in the device's peak, to the byte."""

import unittest

from phantom import GIB, Case


class Peaks(Case):
    def test_a_spike_between_two_samples(self):
        _, said, _ = self.plan("spikes.py", code=2, devices=1)  # the plan itself has no result
        device = said["device"]
        self.assertEqual(device["statistics"]["num_snapshots"], 1)
        self.assertEqual(device["history"]["used_bytes"], [said["used"]])
        before = said["used"] - said["reserved"]  # the context
        self.assertEqual(device["peak_memory"], before + said["peak_reserved"])
        self.assertEqual(device["peak_memory"], said["used"] + GIB)
        self.assertEqual(device["peak_is"], "recorded")


if __name__ == "__main__":
    unittest.main()
