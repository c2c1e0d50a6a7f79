"""Advice for programs with a fault: none once it is fixed, and the promised saving equals the saving in PyTorch's own counter."""

import json
import unittest

from phantom import Case


# Advice that programs with other faults must not get.
UNMISTAKABLE = {
    "inference_with_autograd",
    "checkpoint_each_layer",
    "kept_over_steps",
    "repeated_concatenation",
    "loaded_checkpoint",
    "model_copies",
    "collected_results",
    "attention_matrices",
    "forwards_before_backward",
    "held_results",
}
# To the byte, if the programs differ in nothing else.
DIFFERENCES = {
    "attention_matrices": 2 << 20,  # of some 1.1 GB: a fused kernel keeps sums of rows
    "checkpoint_each_layer": 16 << 10,  # two peaks that come at different layers have other small tensors beside them
    "forwards_before_backward": 512,  # the sum of the losses
}


class Advice(Case):
    def results(self, command, run, *options):
        """Results for the GPU, or for the failure."""
        found = json.loads(self.read(command, "--format", "json", *options, self.files[run["pid"]]))
        return [part for part in found["failures" if command == "explain" else "devices"] if part["device"].startswith("cuda")]

    def test_savings_are_the_measured_ones(self):
        _, said, _ = self.plan("faults.py", "all", code=1)  # because one of them runs out of memory
        rows = json.loads(self.read("summary", "--format", "json", *self.folder.glob("*.tide")))["ranks"]["rows"]
        self.files = {row["pid"]: row["file"] for row in rows}
        runs = {(one["case"], one["fixed"]): one for one in said}
        self.check_failure(runs.pop(("out_of_memory", False)), runs.pop(("out_of_memory", True)))
        self.check_retry(runs.pop(("failed_call", False)), runs.pop(("failed_call", True)))
        self.assertEqual(len(runs), 2 * 20)
        for kind in {case for case, _ in runs}:
            with self.subTest(kind):
                self.check(kind, runs[kind, False], runs[kind, True])

    def check(self, kind, faulty, fixed):
        (device,), (mended,) = self.results("patterns", faulty), self.results("patterns", fixed)
        advice = {advice["kind"]: advice for advice in device["advice"]}
        self.assertIn(kind, advice)
        self.assertNotIn(kind, {advice["kind"] for advice in mended["advice"]})
        others = {advice["kind"] for advice in device["advice"] + mended["advice"]} - {kind}
        self.assertEqual(others & UNMISTAKABLE, set())
        # Chunks of logits and recomputed tensors exist temporarily, but not at the peak.
        self.assertAlmostEqual(advice[kind]["avoidable_peak_bytes"], faulty["peak"] - fixed["peak"], delta=DIFFERENCES.get(kind, 0))
        (summary,) = self.results("summary", faulty)
        self.assertEqual(summary["advice"], device["advice"])

    def check_retry(self, faulty, fixed):
        """The second request failed because of tensors kept by the first call's exception; after the except block it succeeds."""
        latest, first = self.results("explain", faulty, "--simulate", "off")
        advice = {advice["kind"]: advice for advice in latest["advice"]}["failed_call"]
        self.assertTrue(advice["suffices"])
        # The memory allocated at the first request is allocated again, except for the model.
        parameters = 4 * (2 * 8192 * 512 + 512 * 2 + 6 * (2 * 512 * 2048 + 2048 + 512 + 2 * 512))
        self.assertAlmostEqual(advice["held_bytes"], first["allocated_bytes"] - parameters, delta=16 << 20)
        self.assertNotIn("failed_call", {advice["kind"] for advice in first["advice"]})
        self.assertEqual(len(self.results("explain", fixed, "--simulate", "off")), 1)

    def check_failure(self, faulty, fixed):
        """With recomputed activations, the request would have fit; the other program shows it."""
        (failure,) = self.results("explain", faulty, "--simulate", "off")
        advice = {advice["kind"]: advice for advice in failure["advice"]}["checkpoint_activations"]
        self.assertTrue(advice["suffices"])
        self.assertEqual(self.results("explain", fixed, "--simulate", "off"), [])
        # Those of six layers, of 151 MB each, except for the 16 MiB that the next one reads.
        self.assertEqual(len(advice["modules"]), 6)
        self.assertEqual(advice["held_bytes"], sum(module["held_bytes"] for module in advice["modules"]))


if __name__ == "__main__":
    unittest.main()
