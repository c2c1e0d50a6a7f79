"""Two more programs for each kind of fault: the first ten lines name it, the saving is the measured one, and the fixed program has no finding."""

import json
import re
import unittest

from phantom import MIB, Case

# Advice for the programs with a fault, and the allowed difference between the promised saving and that in PyTorch's counter.
ADVICE = {
    "generation_with_autograd": ("inference_with_autograd", 0),
    "teacher_in_the_model": ("inference_with_autograd", 0),
    # less than the saving, by inputs that only the graph keeps.
    "discriminator_on_attached": ("unused_gradients", MIB),
    "probe_on_attached": ("unused_gradients", 9 * MIB),
    "rollouts": ("kept_over_steps", 9 * MIB),  # memory kept by the previous step is alive until this one's optimizer step
    "epoch_of_outputs": ("kept_over_steps", 0),
    "embeddings_concatenated": ("repeated_concatenation", 0),
    "checkpoint_of_halves": ("checkpoint_each_layer", 0),
    "reentrant_checkpoint": ("checkpoint_each_layer", 3 * MIB),
    "foreach_nadam": ("optimizer_temporaries", 10 * MIB),  # one at a time needs two tensors of a parameter
    "foreach_sgd": ("optimizer_temporaries", 0),
}
# The first lines of `patterns`.
FINDINGS = {
    "inference_with_autograd": (r"backward pass that never runs", r"torch\.no_grad\(\)"),
    "unused_gradients": (r"modules whose gradients no optimizer uses", r"detach\(\)"),
    "kept_over_steps": (r"Tensors of several steps are kept and then freed together", r"detach\(\)"),
    "repeated_concatenation": (r"made again and again, each time larger", r"concatenate them once"),
    "checkpoint_each_layer": (r"One checkpoint recomputes several", r"checkpoint each layer by itself"),
    "optimizer_temporaries": (r"temporary tensors for all parameters at once", r"fused=True"),
}
FAULTS = {*FINDINGS, "failed_call", "retained_graph", "collected_results", "forwards_before_backward", "model_copies", "loaded_checkpoint"}
# The leaking line, with the rate computed by the program itself.
LEAKS = {
    "kept_by_a_hook": (r"kept_by_a_hook:|kept_by_a_hook \(", r"a hook keeps the tensors"),
    "state_continued": (r"state_continued \(.*kinds\.py:\d+\)",),
    "models_made_anew": (r"situations\.py:21\)", r"backward of"),
    "update_by_hand": (r"update_by_hand \(.*kinds\.py:\d+\)", r"losses are kept with their autograd graphs"),
}
SAWTEETH = {"rollouts": r"rollouts \(.*kinds\.py:\d+\)", "epoch_of_outputs": r"epoch_of_outputs \(.*kinds\.py:\d+\)"}
FAILURES = {
    "batch_halved_in_except": r"try again after the except block",
    "embeddings_concatenated": r"concatenate them once",
}


class Kinds(Case):
    def device(self, run, command):
        parts = json.loads(self.read(command, "--format", "json", self.files[run["pid"]]))["devices"]
        (device,) = [part for part in parts if part["device"].startswith("cuda")]
        return device

    def check_first_lines(self, run, command, *expected):
        lines = self.read(command, self.files[run["pid"]]).decode().splitlines()[:10]
        for text in expected:
            self.assertTrue(re.search(text, "\n".join(lines)), f"{text}\n" + "\n".join(lines))

    def test_kinds(self):
        _, runs, _ = self.plan("kinds.py", devices=1, code=1)  # because some run out of memory
        rows = json.loads(self.read("summary", "--format", "json", *self.folder.glob("*.tide")))["ranks"]["rows"]
        self.files = {row["pid"]: row["file"] for row in rows}
        mended = {run["program"]: run for run in runs if run["fixed"]}
        faulty = {run["program"]: run for run in runs if not run["fixed"]}
        self.assertEqual({*ADVICE, *LEAKS, *FAILURES}, set(faulty))
        for name, run in faulty.items():
            with self.subTest(name):
                self.check_advice(name, run, mended[name])
                self.check_growth(name, run, mended[name])
        for name, run in mended.items():
            with self.subTest(name, fixed=True):
                given = {advice["kind"] for advice in self.device(run, "patterns")["advice"]}
                self.assertEqual(given & FAULTS, set())

    def check_advice(self, name, run, mended):
        advice = {advice["kind"]: advice for advice in self.device(run, "patterns")["advice"]}
        if name in FAILURES:
            self.check_first_lines(run, "explain", FAILURES[name])
        if name not in ADVICE:
            return
        kind, difference = ADVICE[name]
        self.check_first_lines(run, "patterns", *FINDINGS[kind])
        self.assertAlmostEqual(advice[kind]["avoidable_peak_bytes"], run["peak"] - mended["peak"], delta=difference)

    def check_growth(self, name, run, mended):
        if name in SAWTEETH:
            self.check_first_lines(run, "leaks", r"No leak", r"kept for several steps and then freed together", SAWTEETH[name])
        if name not in LEAKS:
            return
        leaks = json.loads(self.read("leaks", "--format", "json", self.files[run["pid"]]))
        self.assertEqual(leaks["verdict"], "leak")
        self.assertAlmostEqual(leaks["bytes_per_step"], run["known"], delta=0.01 * run["known"])
        self.check_first_lines(run, "leaks", *LEAKS[name])
        mended_leaks = json.loads(self.read("leaks", "--format", "json", self.files[mended["pid"]]))
        self.assertEqual(mended_leaks["verdict"], "no_leak")


class WrongDevice(Case):
    """A rank that allocates on the device of another one."""

    def summary_of(self, case):
        _, ranks, _ = self.plan("wrong_device.py", case)
        lines = self.read("summary", *sorted(self.folder.glob("*.tide"))).decode().splitlines()[:10]
        return ranks[1]["peaks"][0], "\n".join(lines)

    def test_wrong_device(self):
        for case in ("fixed_device", "optimizer_of_rank_0"):
            with self.subTest(case):
                there, text = self.summary_of(case)
                size = re.escape(f"{there / MIB:.1f} MiB")
                self.assertRegex(text, rf"rank 1 allocates on cuda:0, the device of rank 0: {size} at its peak, and a CUDA context")
                self.assertRegex(text, rf"{case} \(.*wrong_device\.py:\d+\)")

    def test_own_device(self):
        self.assertNotIn("allocates on", self.summary_of("own_device")[1])


class Snapshots(Case):
    """PyTorch's snapshots with C++ frames: call sites are lines of the program."""

    def test_call_sites(self):
        _, programs, _ = self.plan("snapshots.py", str(self.folder), devices=1)
        for name, known in programs.items():
            with self.subTest(name):
                lines = self.read("table", "--at", "end", self.folder / f"{name}.pickle").decode().splitlines()[:10]
                size = re.escape(f"{known['bytes'] / MIB:.1f} MiB")
                self.assertRegex("\n".join(lines), rf"{size} .* {name} \(.*snapshots\.py:{known['line']}\)")
        leaks = self.read("leaks", self.folder / "trained.pickle").decode().splitlines()[:10]
        self.assertRegex("\n".join(leaks), rf"grows by 4\.0 MiB per step(.*\n)*.*trained \(.*snapshots\.py:{programs['trained']['line']}\)")
        summary = self.read("summary", self.folder / "recorded_late.pickle").decode()
        self.assertIn("allocated before the history was switched on", summary)


if __name__ == "__main__":
    unittest.main()
