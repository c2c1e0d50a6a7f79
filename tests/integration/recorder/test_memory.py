"""What recording takes of the program's memory."""

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
        """All that recording adds to what is resident, and that it is the same after ten times as many events more."""
        short, long = self.measure(20, 200)
        print(f"added bytes: {short} {long}", file=sys.stderr)
        for added in (short, long):
            self.assertLessEqual(added["VmHWM"], 32 << 20)
        # The ring, which is shared memory, fills its 16 MiB when the recorder gets no processor for a while.
        self.assertLessEqual(long["RssShmem"], 17 << 20)
        # How much of a file is mapped depends on what the system has cached of it.
        self.assertLessEqual(long["RssAnon"] - short["RssAnon"], 2 << 20)


if __name__ == "__main__":
    unittest.main()
