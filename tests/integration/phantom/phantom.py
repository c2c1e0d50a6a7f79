"""Shared by the drivers beside this file: a PyTorch program on phantom GPUs, planned for an H200. See tests/integration/recorder/driver.py."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recorder"))
import driver  # noqa: E402

MIB = 1 << 20
GIB = 1 << 30

# An H200 with driver 580, as measured.
NAME = "NVIDIA H200"
TOTAL = 150109880320
CONTEXT = 648871936


class Case(driver.Case):
    def plan(self, *program, code=0, devices=2, **variables):
        """Plans a program beside this file, or a whole command line. (the plan, what the program printed as JSON, its stderr)"""
        command = [driver.PYTHON, str(Path(__file__).with_name(program[0])), *program[1:]] if program[0].endswith(".py") else program
        options = ["--gpu", "H200", "--devices", str(devices), "--steps", "0", "--python", driver.PYTHON, "--format", "json", "--force", "-o", str(self.output)]
        done = driver.run([driver.TIDEMARK, "plan", *options, "--", *command], env=driver.environment(**variables))
        stderr = done.stderr.decode()
        self.assertEqual(done.returncode, code, stderr)
        self.assertNotIn("has no answer", stderr)
        printed = [line for line in stderr.splitlines() if line.startswith(("{", "["))]
        return json.loads(done.stdout or "null"), json.loads(printed[-1]), stderr
