"""`tidemark doctor` reports this machine's and this interpreter's own values."""

import json
import os
import platform
import tempfile
import unittest

import torch
from driver import PYTHON, TIDEMARK, environment, run


def doctor(*command, **variables):
    """The exit code, and the checks by name: the last one of each name."""
    done = run([TIDEMARK, "doctor", "--format", "json", *command], env=environment(**variables))
    report = json.loads(done.stdout)
    return done.returncode, {check["name"]: check for check in report["checks"]}


class Doctor(unittest.TestCase):
    def test_interpreter_and_torch(self):
        code, checks = doctor("--", PYTHON, "train.py")
        self.assertEqual(code, 0)
        self.assertIn(f"Python {platform.python_version()} at {PYTHON}", checks["python"]["text"])
        self.assertEqual(checks["python_stacks"]["status"], "ok")
        self.assertIn(os.path.dirname(torch.__file__), checks["torch"]["text"])
        self.assertIn("CPU only" if torch.version.cuda is None else f"CUDA {torch.version.cuda}", checks["torch"]["text"])
        for name in ("preload_library", "memfd", "socket", "space"):
            self.assertEqual(checks[name]["status"], "ok", name)

    def test_interpreter_of_a_script(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "torchrun")
            with open(script, "w") as file:
                file.write(f"#!{PYTHON}\nraise SystemExit('was run')\n")
            os.chmod(script, 0o755)
            code, checks = doctor("--", script, "x")
            self.assertEqual(code, 0)
            self.assertIn(PYTHON, checks["python"]["text"])

    def test_what_is_no_interpreter(self):
        for name in ("/nowhere/python3", "cat"):
            code, checks = doctor("--", name)
            self.assertEqual(code, 1)
            self.assertEqual(checks["python"]["status"], "problem")
            self.assertIn(name, checks["python"]["text"])

    def test_no_python_at_all_is_a_warning(self):
        code, checks = doctor(PATH="/nowhere")
        self.assertEqual(code, 0)
        self.assertEqual(checks["python"]["status"], "warning")

    def test_other_profilers(self):
        _, checks = doctor("--", PYTHON, CUDA_INJECTION64_PATH="/opt/other.so")
        self.assertEqual(checks["injection"]["status"], "warning")
        self.assertIn("CUDA_INJECTION64_PATH=/opt/other.so", checks["injection"]["text"])
        _, checks = doctor("--", PYTHON)
        self.assertEqual(checks["injection"]["status"], "ok")

    def test_folder_for_the_socket(self):
        _, checks = doctor("--", PYTHON, TMPDIR=tempfile.gettempdir(), XDG_RUNTIME_DIR="", TIDEMARK_RUNTIME_DIR="")
        self.assertIn(tempfile.gettempdir(), checks["socket"]["text"])
        _, checks = doctor("--", PYTHON, TIDEMARK_RUNTIME_DIR="/nowhere")
        self.assertEqual(checks["socket"]["status"], "problem")


if __name__ == "__main__":
    unittest.main()
