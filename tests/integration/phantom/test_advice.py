"""Advice for programs that have a fault: none once it is mended, and what it promised to save is what PyTorch's own counter says was saved."""

import json
import unittest

from phantom import Case


# What programs with other faults must not get.
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
}
# To the byte, where the programs differ in nothing else.
DIFFERENCES = {
    "attention_matrices": 2 << 20,  # of some 1.1 GB: a fused kernel keeps sums of rows
    "checkpoint_each_layer": 16 << 10,  # two peaks that come at different layers have other small tensors beside them
    "forwards_before_backward": 512,  # the sum of the losses
}


class Advice(Case):
    def results(self, command, run, *options):
        """Of the GPU, or of the failure."""
        found = json.loads(self.read(command, "--format", "json", *options, self.files[run["pid"]]))
        return [part for part in found["failures" if command == "explain" else "devices"] if part["device"].startswith("cuda")]

    def test_savings_are_the_measured_ones(self):
        _, said, _ = self.plan("faults.py", "all", code=1)  # for one of them runs out of memory
        rows = json.loads(self.read("summary", "--format", "json", *self.folder.glob("*.tide")))["ranks"]["rows"]
        self.files = {row["pid"]: row["file"] for row in rows}
        runs = {(one["case"], one["fixed"]): one for one in said}
        self.check_failure(runs.pop(("out_of_memory", False)), runs.pop(("out_of_memory", True)))
        self.check_retry(runs.pop(("failed_call", False)), runs.pop(("failed_call", True)))
        self.assertEqual(len(runs), 2 * 19)
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
        # Chunks of logits, and what is recomputed, are there for a while, but not when memory is at its highest.
        self.assertAlmostEqual(advice[kind]["avoidable_peak_bytes"], faulty["peak"] - fixed["peak"], delta=DIFFERENCES.get(kind, 0))
        (summary,) = self.results("summary", faulty)
        self.assertEqual(summary["advice"], device["advice"])

    def check_retry(self, faulty, fixed):
        """The second request failed for what the first call's exception kept; after the except block it is met."""
        latest, first = self.results("explain", faulty, "--simulate", "off")
        advice = {advice["kind"]: advice for advice in latest["advice"]}["failed_call"]
        self.assertTrue(advice["suffices"])
        # What the first request found allocated is there again, but for the model.
        parameters = 4 * (2 * 8192 * 512 + 512 * 2 + 6 * (2 * 512 * 2048 + 2048 + 512 + 2 * 512))
        self.assertAlmostEqual(advice["held_bytes"], first["allocated_bytes"] - parameters, delta=16 << 20)
        self.assertNotIn("failed_call", {advice["kind"] for advice in first["advice"]})
        self.assertEqual(len(self.results("explain", fixed, "--simulate", "off")), 1)

    def check_failure(self, faulty, fixed):
        """Had the activations been recomputed, the request would have fitted; the other program shows it."""
        (failure,) = self.results("explain", faulty, "--simulate", "off")
        advice = {advice["kind"]: advice for advice in failure["advice"]}["checkpoint_activations"]
        self.assertTrue(advice["suffices"])
        self.assertEqual(self.results("explain", fixed, "--simulate", "off"), [])
        # Those of six layers, of 151 MB each, but for the 16 MiB that the next one reads.
        self.assertEqual(len(advice["modules"]), 6)
        self.assertEqual(advice["held_bytes"], sum(module["held_bytes"] for module in advice["modules"]))


if __name__ == "__main__":
    unittest.main()
