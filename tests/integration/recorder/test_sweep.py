"""The largest value that fits equals that of separate plans; a sweep runs each configuration once, and resumes."""

import csv
import json
import signal
import subprocess
import unittest

from driver import PATIENCE_S, TIDEMARK, Case, has_cuda, program, run, wait_for

HAS_CUDA = has_cuda()
GIB = 1 << 30
MEMORY = ("--gpu", "H200", "--memory", "4GiB")


class Sweeping(Case):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "sweep"

    def sweep_command(self, *options, command):
        return [TIDEMARK, "sweep", "-o", str(self.output), *options, "--", *command]

    def kept(self):
        """The lines of trials, without the first."""
        return [json.loads(line) for line in (self.output / "trials.jsonl").read_text().splitlines()[1:]]


@unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
class Phantom(Sweeping):
    def test_the_largest_value_that_fits(self):
        command = program("varied.py", "--fail")
        fit = ("--fit", "batch=--batch-size=1..1024", "--margin", "0%")
        done = run([TIDEMARK, "plan", *MEMORY, "--format", "json", *fit, "--", *command])
        self.assertEqual(done.returncode, 0, done.stderr)
        fit = json.loads(done.stdout)["fit"]
        values = [trial["value"] for trial in fit["trials"]]
        self.assertEqual((values[:2], fit["memory_bytes"], fit["limit_bytes"]), ([1, 4], 4 << 30, 4 << 30))
        self.assertLessEqual(len(values), 8, values)
        largest = fit["largest"]
        for value, fits in {largest: True, largest + 1: False}.items():
            recording = str(self.folder / "plan.tide")
            plan = [TIDEMARK, "plan", *MEMORY, "--format", "json", "-f", "-o", recording]
            done = run([*plan, "--", *command, "--batch-size", str(value)])
            self.assertEqual(done.returncode, 0 if fits else 1, done.stderr)
            (device,) = json.loads(done.stdout)["devices"]
            trial = next(trial for trial in fit["trials"] if trial["value"] == value)
            for key in ("fits", "peak_allocated_bytes", "peak_reserved_bytes", "device_used_bytes"):
                self.assertEqual(trial[key], device[key], key)

    def test_changes_that_make_a_program_fit(self):
        """Each change of the command that a plan prints as a fix is one that fits when it is planned by itself."""

        def plan(memory, *arguments):
            command = ["plan", "--gpu", "H200", "--memory", str(memory), "-f", "-o", str(self.folder / "plan.tide")]
            return [TIDEMARK, *command, "--steps", "1", *arguments]

        def used(*arguments):
            done = run([*plan("16GiB", "--format", "json"), "--", *program("varied.py", *arguments)])
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["devices"][0]["device_used_bytes"]

        halved = used("--batch-size", "32")
        checkpointed = used("--batch-size", "64", "--grad-checkpointing")
        self.assertLess(halved, checkpointed)
        command = program("varied.py", "--batch-size", "64")
        done = run([*plan(checkpointed), "--", *command])
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = done.stdout.decode().splitlines()
        title = lines.index("Fixes, each enough:")
        self.assertLess(title, 5, lines)
        batch = "--batch-size 32, with gradient accumulation over 2 steps for a batch of 64"
        self.assertEqual(
            lines[title + 1 : title + 3],
            [
                f"  1. {batch}: fits with {halved / GIB:.1f} GiB used",
                f"  2. --grad-checkpointing: fits with {checkpointed / GIB:.1f} GiB used",
            ],
        )
        # With less memory, checkpointing is not enough.
        done = run([*plan(halved), "--", *command])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"Fix that is enough:\n  1. {batch}: ".encode(), done.stdout)
        self.assertNotIn(b"--grad-checkpointing", done.stdout)

    def test_four_configurations_in_two_calls(self):
        def sweep(*options):
            return run(self.sweep_command(*MEMORY, "--plot", "svg", *options, command=program("varied.py", "--fail")))

        done = sweep("--vary", "width=512,1024", "--vary", "batch=--batch-size=2", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        before = self.kept()
        done = sweep("--vary", "width=512,1024", "--vary", "batch=--batch-size=2,3", "--format", "json")
        self.assertEqual(done.returncode, 1, done.stderr)  # some failed
        rows = {tuple(row["values"].values()): row for row in json.loads(done.stdout)["rows"]}
        self.assertEqual(list(rows), [("512", "2"), ("512", "3"), ("1024", "2"), ("1024", "3")])
        self.assertEqual((len(self.kept()), self.kept()[:2]), (4, before))
        for (width, batch), row in rows.items():
            if batch == "3":
                self.assertIn("RuntimeError: three is too many", row["result"]["failure"])
                continue
            # The recording of the trial has the same values; weights and gradients are 8 layers of width * width and width floats.
            totals = self.device(f"sweep/{row['folder']}/recording.tide", "cuda:0")
            self.assertEqual(row["result"]["peak_allocated_bytes"], totals["peak_allocated_bytes"])
            self.assertGreater(totals["peak_allocated_bytes"], 8 * 4 * (int(width) ** 2 + int(width)))
            recording = str(self.folder / "sweep" / row["folder"] / "recording.tide")
            held = json.loads(self.read("breakdown", "--format", "json", recording))["devices"][0]["categories"]
            self.assertEqual(row["categories"], {part["category"]: part["bytes"] for part in held})
        with open(self.output / "sweep.csv", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        self.assertEqual([(row["width"], row["batch"], row["fits"]) for row in table[:2]], [("512", "2", "true"), ("512", "3", "")])
        self.assertEqual(json.loads((self.output / "sweep.json").read_text()), json.loads(done.stdout))
        for name in ("curves.svg", "fits.svg"):
            self.assertIn("<svg", (self.output / name).read_text())


class OtherPrograms(Sweeping):
    def test_failed_trials_run_again_when_asked(self):
        def sweep(*options):
            return run(self.sweep_command("--on", "real", "--plot", "none", "--vary", "code=3,4", *options, command=["sh", "-c", "exit {code}"]))

        other = self.output / "trials" / "0001" / "of another program"
        other.parent.mkdir(parents=True)
        other.touch()
        for options, trials in (((), 2), ((), 2), (("--retry",), 4)):
            done = sweep(*options)
            self.assertEqual((done.returncode, len(self.kept())), (1, trials), done.stderr)
        self.assertIn("2 of 2 configurations were tried, 2 failed", done.stdout.decode())
        self.assertEqual([trial["folder"] for trial in self.kept()], [f"trials/000{n}" for n in (2, 3, 4, 5)])
        self.assertTrue(other.exists())

    def test_a_size_that_somebody_else_wrote(self):
        def sweep(values):
            return run(self.sweep_command(*MEMORY, "--plot", "none", "--vary", f"batch={values}", command=["true"]))

        self.assertEqual(sweep("1").returncode, 1)  # no Python program
        first, line = (self.output / "trials.jsonl").read_text().splitlines()
        # With a quarter more that is 2^64.
        trial = {**json.loads(line), "fits": True, "host_bytes": 14757395258967641293}
        (self.output / "trials.jsonl").write_text(f"{first}\n{json.dumps(trial)}\n")
        done = sweep("1,2")
        self.assertEqual((done.returncode, len(self.kept())), (1, 2), done.stderr)

    def test_ctrl_c_ends_the_trials_and_keeps_the_others(self):
        script = f"touch {self.folder}/" + "{time}; sleep {time}000"
        command = self.sweep_command("--on", "real", "--vary", "time=0,9", command=["sh", "-c", script])
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            wait_for((self.folder / "9").exists, "the trial that does not end")
            wait_for(lambda: (self.output / "trials.jsonl").exists() and self.kept(), "the trial that ends")
            second = run(command)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((second.returncode, second.stdout), (2, b""))
        self.assertIn("another sweep is under way there", second.stderr.decode())
        self.assertEqual(process.returncode, 128 + signal.SIGINT, stderr)
        self.assertIn("the same command runs the others", stderr.decode())
        self.assertEqual([trial["values"] for trial in self.kept()], [["0"]])
        self.assertEqual([path.name for path in (self.output / "trials").iterdir()], ["0001"])
        self.assertTrue((self.output / "sweep.json").exists())

    def test_mistakes(self):
        for options, command, message in (
            (("--vary", "batch=8..1"), ["true"], "--vary batch: '8..1': an empty range"),
            (("--vary", "batch=1..8:0"), ["true"], "the step has to be 1 or more"),
            (("--vary", "batch=1"), ["true", "{seq}"], "{seq} in the program's arguments"),
            (("--vary", "a=1..100:1", "--vary", "b=1..100:1"), ["true"], "more than 4096 configurations"),
            (("--vary", "a=1", "--vary", "a=2"), ["true"], "a is given twice"),
            (("--vary", "a=1", "--gpu", "H200,X9"), ["true"], "unknown GPU"),
            (("--vary", "a=1", "--on", "real", "--devices", "2"), ["true"], "only for plans"),
        ):
            options = options if "--gpu" in options or "real" in options else ("--gpu", "H200", *options)
            done = run(self.sweep_command(*options, command=command))
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertIn(message, done.stderr.decode())
        for options, message in {
            ("--fit", "batch=--batch-size=8..1"): "an empty range",
            ("--fit", "batch", "-o", "x.tide"): "--fit keeps no recording",
        }.items():
            done = run([TIDEMARK, "plan", *MEMORY, *options, "--", "true"])
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertIn(message, done.stderr.decode())
        self.assertFalse(self.output.exists())


if __name__ == "__main__":
    unittest.main()
