"""The program's memory used by recording."""

import json
import sys
import unittest

from driver import Case, program, run


class Memory(Case):
    def measure(self, *steps):
        command = program("memory.py", "--steps", *steps)
        plain = json.loads(run(command).stdout)
        recorded = json.loads(self.record_well(command, "--stacks", "both").stdout)
        return [{name: ours[name] - theirs[name] for name in theirs} for ours, theirs in zip(recorded, plain)]

    def test_bounded_whatever_the_length(self):
        """Resident memory added by recording, which is the same after ten times as many events."""
        short, long = self.measure(20, 200)
        print(f"added bytes: {short} {long}", file=sys.stderr)
        for added in (short, long):
            self.assertLessEqual(added["VmHWM"], 32 << 20)
        # The ring, which is shared memory, fills its 16 MiB if the recorder gets no processor for a while.
        self.assertLessEqual(long["RssShmem"], 17 << 20)
        # How much of a file is mapped depends on the system's cache.
        self.assertLessEqual(long["RssAnon"] - short["RssAnon"], 2 << 20)


if __name__ == "__main__":
    unittest.main()
