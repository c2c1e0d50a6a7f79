"""Reported situations: the first ten lines of the obvious command give the right answer. See docs/reports.md."""

import json
import re
import unittest

from phantom import Case

# For each the command, and regular expressions for its first ten lines.
ANSWERS = {
    "total_loss": ("leaks", [r"No leak"]),
    "collected_predictions": ("patterns", [r"Results of many calls are collected .*in 99 blocks", r"\.cpu\(\)"]),
    "best_states": ("leaks", [r"Leak: 1 call site grows", r"best_states \(.*situations\.py:\d+\)"]),
    "attached_generator": ("patterns", [r"modules whose gradients no optimizer uses", r"detach\(\)"]),
    "replay_buffer": ("leaks", [r"882\.0 KiB.*replaced", r"replay_buffer \(.*situations\.py:\d+\)"]),
    "random_lengths": ("fragmentation", [r"unused share"]),
    "hidden_state": ("leaks", [r"64\.0 KiB per step", r"hidden_state \(.*situations\.py:\d+\)"]),
    "function_attributes": ("leaks", [r"4\.0 MiB per step.*retained autograd graph", r"Square\.forward"]),
    "all_logits": ("patterns", [r"The logits are copied to twice their precision", r"fused cross-entropy"]),
    "loaded_checkpoint": ("patterns", [r"Tensors of a checkpoint that was loaded", r"map_location"]),
    "cyclic_batches": ("leaks", [r"4\.0 MiB per step", r"cyclic_batches:\d+"]),
    "cached_masks": ("leaks", [r"4\.0 MiB per step", r"Mask\.mask \(.*situations\.py:\d+\)"]),
    "metric_of_all_steps": ("leaks", [r"1000\.0 KiB per step", r"metric_of_all_steps \(.*situations\.py:\d+\)"]),
    "growing_key_cache": ("patterns", [r"made again and again, each time larger", r"concatenate them once"]),
    "average_of_weights": ("patterns", [r"A copy of the model \(copy\.deepcopy\)", r"keep the copy on the CPU"]),
    "first_optimizer_step": ("patterns", [r"temporary tensors for all parameters at once", r"fused=True"]),
    "gradients_of_all_steps": ("leaks", [r"16\.0 MiB per step", r"gradients_of_all_steps"]),
    "losses_of_eight_batches": ("patterns", [r"Activations of several forward passes wait for one backward pass", r"backward\(\) on each loss"]),
    "attention_by_hand": ("patterns", [r"matrices of sequence length x sequence length", r"scaled_dot_product_attention"]),
    "gradients_of_inputs": ("leaks", [r"1\.[56] MiB per step", r"backward of 0"]),
}


class Situations(Case):
    def test_first_lines(self):
        _, pids, _ = self.plan("situations.py")
        rows = json.loads(self.read("summary", "--format", "json", *self.folder.glob("*.tide")))["ranks"]["rows"]
        files = {row["pid"]: row["file"] for row in rows}
        self.assertEqual(set(pids), set(ANSWERS))
        for name, (command, expected) in ANSWERS.items():
            with self.subTest(name):
                lines = self.read(command, files[pids[name]]).decode().splitlines()[:12]
                for text in expected:
                    self.assertTrue(re.search(text, "\n".join(lines)), f"{text}\n" + "\n".join(lines))


if __name__ == "__main__":
    unittest.main()
