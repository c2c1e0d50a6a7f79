"""`plan --verify` inside a plan: the GPU of the machine is a phantom GPU too, so every event is equal."""

import json
import unittest

from phantom import Case, driver


class Verify(Case):
    def verify(self, *arguments):
        command = [driver.TIDEMARK, "plan", "--verify", "--steps", "2", "--format", "json", "--", *driver.program("planned.py", *arguments)]
        script = "import json, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True); print(json.dumps([done.returncode, done.stdout]))"
        _, (code, printed), stderr = self.plan(driver.PYTHON, "-c", script, *command, code=2, devices=1)
        self.assertEqual(code, 0, stderr)
        return json.loads(printed)

    def test_every_event_until_the_last_step(self):
        found = self.verify("--steps", "9")
        self.assertEqual((found["equal"], found["within_tolerance"]), (True, True))
        (device,) = found["devices"]
        self.assertEqual((device["device"], device["first_difference"]), ("cuda:0", None))
        self.assertEqual(device["planned"], device["real"])
        # At least weights and gradients of 4 * (1024 * 1024 + 1024) parameters.
        self.assertGreater(device["planned"]["peak_allocated_bytes"], 2 * 4 * 4 * (1024 * 1024 + 1024))


if __name__ == "__main__":
    unittest.main()
