"""The C++ examples for libtorch and plain CUDA, as built by tests/package/install: their output and their recordings."""

import json
import os
import unittest
from pathlib import Path

from phantom import MIB, TOTAL, Case, driver

EXAMPLES = Path(os.environ["TIDEMARK_EXAMPLES"])
STEPS = 20  # of libtorch_training
CUDA_STEPS = 40  # of cuda_training


class Examples(Case):
    def run_unrecorded(self, name):
        """The example's output, its recording and its report; it must find everything right."""
        recording, report = self.folder / f"{name}.tide", self.folder / f"{name}.json"
        program = [str(EXAMPLES / name), str(recording), str(report)]
        # The plan records nothing, so it has no recording.
        _, result, stderr = self.plan(
            driver.PYTHON, str(Path(__file__).with_name("unrecorded.py")), *program, code=2, devices=1
        )
        self.assertEqual(result["exit_code"], 0, f"{result} {stderr}")
        return result["lines"], recording, json.loads(report.read_text())

    def steps_of(self, recording):
        return json.loads(self.read("leaks", "--format", "json", recording))["steps"]["count"]

    def test_libtorch_records_itself(self):
        lines, recording, report = self.run_unrecorded("libtorch_training")
        counted = json.loads(lines[-1])
        (device,) = (
            one
            for one in json.loads(self.read("summary", "--format", "json", recording))["devices"]
            if one["device"] == "cuda:0"
        )
        self.assertEqual(device["peak_allocated_bytes"], counted["max_memory_allocated"])
        self.assertEqual(device["peak_reserved_bytes"], counted["max_memory_reserved"])
        # Parameters, gradients and AdamW's two moments, in float32, are alive at the peak.
        parameters = 3072 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10
        self.assertGreater(device["peak_allocated_bytes"], 4 * 4 * parameters)
        self.assertLess(device["peak_allocated_bytes"], 4 * 4 * parameters + 64 * MIB)
        self.assertEqual(self.steps_of(recording), STEPS)
        dumped = self.read("dump", recording).decode()
        for name in ("epoch 0", "epoch 1", "forward", "backward", "optimizer"):
            self.assertIn(f'text="{name}"', dumped)
        self.assertEqual(report["training_metrics"]["loss"]["count"], STEPS)

    def test_libtorch_is_planned(self):
        plan, counted, _ = self.plan(
            str(EXAMPLES / "libtorch_training"), str(self.folder / "no.tide"), str(self.folder / "report.json"), devices=1
        )
        (device,) = plan["devices"]
        self.assertEqual(device["peak_allocated_bytes"], counted["max_memory_allocated"])
        self.assertEqual(device["peak_reserved_bytes"], counted["max_memory_reserved"])
        self.assertEqual((plan["steps"], plan["steps_by"], plan["stopped"]), (STEPS, "marks", False))
        self.assertFalse((self.folder / "no.tide").exists())  # it is a range of the plan's recording
        self.assertEqual(self.steps_of(self.output), STEPS)

    def test_a_plan_ends_it_after_three_marked_steps(self):
        command = [
            driver.TIDEMARK,
            "plan",
            "--gpu",
            "H200",
            "--python",
            driver.PYTHON,
            "--format",
            "json",
            "-o",
            str(self.output),
        ]
        done = driver.run(
            [
                *command,
                "--",
                str(EXAMPLES / "libtorch_training"),
                str(self.folder / "no.tide"),
                str(self.folder / "report.json"),
            ]
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual((plan["steps"], plan["steps_by"], plan["stopped"]), (3, "marks", True))
        self.assertEqual(self.steps_of(self.output), 3)
        self.assertNotIn(b"epoch 1", done.stderr)
        self.assertFalse((self.folder / "report.json").exists())  # written after the training

    def test_plain_cuda(self):
        lines, recording, report = self.run_unrecorded("cuda_training")
        # 4 times 64 MiB, and the pool's two chunks of 32 MiB for the 48 MiB of a step.
        self.assertEqual(json.loads(lines[-1])["held"], {"begin": 0, "model": 256 * MIB, "trained": (256 + 64) * MIB})
        self.assertIn(f"memory of the device: {TOTAL}", lines)
        self.assertIn("bytes copied ahead: 335626240", lines)  # 40 batches of 256 images of 32 KiB with their classes
        self.assertEqual(self.steps_of(recording), CUDA_STEPS)
        metric = report["training_metrics"]["number of the batch"]
        self.assertEqual(
            (metric["count"], metric["min"], metric["max"], metric["mean"]),
            (CUDA_STEPS, 0, CUDA_STEPS - 1, (CUDA_STEPS - 1) / 2),
        )


if __name__ == "__main__":
    unittest.main()
