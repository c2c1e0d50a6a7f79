"""Memory held by tensors is in the recording for every kind of stacks; with both kinds of frames: test_recordings.py."""

import unittest

from holding import Holding


class Held(Holding):
    def test_held_without_stacks(self):
        self.check_held("none")

    def test_held_with_python_stacks(self):
        self.check_held("python")

    def test_held_with_native_stacks(self):
        self.check_held("native")


if __name__ == "__main__":
    unittest.main()
