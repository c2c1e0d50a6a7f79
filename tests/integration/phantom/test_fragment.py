"""`tidemark fragment` on a program that fragments its memory: its facts equal PyTorch's, and its advice works in a replay."""

import unittest

from phantom import Case


class Fragment(Case):
    def test_batches_of_many_lengths(self):
        _, said, _ = self.plan("lengths.py", code=2, devices=1)  # the plan itself has no result
        self.assertGreaterEqual(said["recorded"]["reserved_bytes"], said["reserved"])
        self.assertLessEqual(said["recorded"]["reserved_bytes"], said["last_reserved"])
        self.assertLessEqual(said["recorded"]["peak_allocated_bytes"], said["peak_allocated"])
        unused = said["device"]["unused_memory"]
        self.assertEqual(unused["reserved_bytes"], said["recorded"]["reserved_bytes"])
        # Memory never used while it was watched was not used at PyTorch's peak either.
        self.assertGreaterEqual(unused["idle_bytes"], unused["reserved_bytes"] - said["peak_allocated"])
        self.assertNotEqual(unused["pattern"], "unknown")
        self.assertTrue(unused["is_fragmented"])
        self.assertGreater(unused["forecast"]["device_free_bytes"], 0)
        (advice,) = said["device"]["advice"]
        self.assertEqual(advice["settings"], "expandable_segments:True")
        self.assertIn("--set expandable_segments:True", advice["check"])
        self.assertIn("set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", said["text"])
        self.assertGreater(said["simulation"]["runs"][0]["saved_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
