"""A sweep of DP-SGD fine-tuning: per-sample gradients with the sizes of their shapes, and the files for its users."""

import csv
import importlib.util
import json
import unittest
from pathlib import Path

import phantom
from driver import PYTHON, TIDEMARK, Case, run

CONFIG = Path(phantom.__file__).resolve().parents[2] / "data/small_llama.json"
HAS_OPACUS = all(importlib.util.find_spec(name) for name in ("opacus", "peft", "transformers"))
RANK, PHYSICAL = 8, 2
SMALLEST_BLOCK = 512
# Inputs and outputs of the linear layers of CONFIG: queries, keys and values, output; gate, up and down.
LINEAR = [(256, 256), (256, 128), (256, 128), (256, 256), (256, 688), (256, 688), (688, 256)]
LINEAR_NAMES = [*(f"self_attn.{name}_proj" for name in "qkvo"), "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
LORA_PARAMETERS = 2 * sum(RANK * (inputs + outputs) for inputs, outputs in LINEAR)
FILES = {"memory_profile_results.json", "memory_profile_summary.csv", "detailed_memory_results.json"}
PICTURES = {"memory_analysis_overview", "memory_heatmap", "detailed_memory_analysis", "operation_level_breakdown"}
PICTURES |= {"memory_timeline_config_1", "memory_timeline_config_2"}


class DpSgd(Case):
    def sweep(self, folder_option, *options):
        output = self.folder / "results"
        return output, run([TIDEMARK, "sweep", "--gpu", "H200", folder_option, str(output), "--python", PYTHON, *options])

    @unittest.skipUnless(HAS_OPACUS, "this interpreter has no Opacus, PEFT or transformers")
    def test_per_sample_gradients_by_hooks_and_none_by_ghost_clipping(self):
        varied = ("--seq_lengths", "32", "--batch_sizes", "4", "--max_physical_batch_sizes", str(PHYSICAL), "8", "--lora_ranks", str(RANK))
        options = ("--config", str(CONFIG), *varied, "--clipping", "hooks", "ghost", "--num_steps", "2", "--token", "hf_secret")
        output, done = self.sweep("--results_dir", "--preset", "dp-sgd", *options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("\nComponent breakdown:\n", done.stdout.decode())
        results = json.loads((output / "memory_profile_results.json").read_text())["configurations"]
        details = json.loads((output / "detailed_memory_results.json").read_text())["configurations"]
        # A physical batch of 8 is larger than the batch.
        self.assertEqual([row["arguments"]["clipping"] for row in results], ["hooks", "ghost"])
        for row, detail, samples in zip(results, details, (PHYSICAL, 0)):
            self.assertEqual(row["per_sample_gradient_bytes"], samples * LORA_PARAMETERS * 4)
            self.assertEqual(sum(detail["components"]["per_sample_gradients"].values()), row["per_sample_gradient_bytes"])
            self.assertEqual(detail["components"]["parameters"]["lora"], LORA_PARAMETERS * 4)
            self.assertEqual(detail["components"]["gradients"].get("attention", 0), 0)  # frozen
            peak = row["result"]["peak_allocated_bytes"]
            recording = f"results/{row['folder']}/recording.tide"
            self.check_per_sample_gradients(self.folder / recording, row["per_sample_gradient_bytes"])
            totals = self.device(recording, "cuda:0")
            self.assertEqual(peak, totals["peak_allocated_bytes"])
            # Nothing is allocated outside of the phases.
            self.assertEqual(peak, max(phase["peak_bytes"] for phase in row["phases"].values()))
            self.assertEqual(row["per_sample_gradient_share"], row["per_sample_gradient_bytes"] / peak)
            phases = ["model loading", "data set", "wrapping", "optimizer creation", "privacy engine", "forward", "backward", "optimizer"]
            self.assertEqual(list(row["phases"]), [*phases, "training loop"])
        with open(output / "memory_profile_summary.csv", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        for row, line in zip(results, table, strict=True):
            self.assertEqual(int(line["peak_allocated_bytes"]), row["result"]["peak_allocated_bytes"])
            self.assertEqual(int(line["per_sample_gradients_bytes"]), row["per_sample_gradient_bytes"])
        names = {path.name for path in output.iterdir()}
        self.assertLessEqual(FILES | {picture + ".png" for picture in PICTURES} | {"sweep.json", "sweep.csv"}, names)
        for file in output.rglob("*"):  # the token is in none of them
            self.assertFalse(file.is_file() and b"hf_secret" in file.read_bytes(), file)

    def check_per_sample_gradients(self, recording, said):
        """After the first backward pass: the sizes of the program's tensors `grad_sample`; for each module the sizes from its shapes.

        Ghost clipping keeps the norms of each sample's gradients: 4 bytes of each, in the smallest block for each parameter.
        """
        options = ("--at", "optimizer", "--category", "per_sample_gradient", "--by", "module", "--top", "0", "--device", "cuda:0")
        (device,) = json.loads(self.read("breakdown", *options, "--format", "json", recording))["devices"]
        parameters = 2 * 2 * len(LINEAR)
        self.assertEqual(device["allocated_bytes"], said or parameters * SMALLEST_BLOCK)
        found = {module["module"]: module["bytes"] for module in device["modules"]}
        wanted = {}
        for layer in range(2):
            for name, (inputs, outputs) in zip(LINEAR_NAMES, LINEAR, strict=True):
                path = f"base_model.model.model.layers.{layer}.{name}"
                wanted[f"{path}.lora_A.default"] = PHYSICAL * RANK * inputs * 4 if said else SMALLEST_BLOCK
                wanted[f"{path}.lora_B.default"] = PHYSICAL * RANK * outputs * 4 if said else SMALLEST_BLOCK
        self.assertEqual(found, wanted)

    def test_mistakes_are_found_before_anything_runs(self):
        preset = ("--preset", "dp-sgd")
        mistakes = {
            ("--batch_sizes", "8", "--vary", "a=1", "--", "true"): "--batch_sizes: only with --preset dp-sgd",
            (*preset, "--", "true"): "true: no PROGRAM is given with --preset",
            (*preset, "--vary", "a=1"): "--vary: not with --preset",
            (*preset, "--batch_sizes", "8", "x"): "invalid value 'x' (expected an integer)",
            (*preset, "--batch_sizes", "4", "--max_physical_batch_sizes", "8"): "all are larger than --batch_sizes",
            (*preset, "--wrap", "fsdp", "--nproc", "2", "--clipping", "hooks", "ghost"): "only with --clipping ghost",
            (*preset, "--wrap", "ddp"): "give the number of GPUs with --nproc",
            (*preset, "--nproc", "2"): "only with --wrap ddp or fsdp",
            ("--vary", "a=1"): "name the PROGRAM",
        }
        if HAS_OPACUS:
            mistakes[*preset, "--config", str(self.folder / "none.json")] = "cannot be read as the configuration of a model"
        else:
            mistakes[*preset, "--config", str(CONFIG)] = f"{PYTHON} -m pip install opacus peft transformers"
        for options, message in mistakes.items():
            output, done = self.sweep("-o", *options)
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertIn(message, done.stderr.decode())
            self.assertFalse(output.exists())


if __name__ == "__main__":
    unittest.main()
