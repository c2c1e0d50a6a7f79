"""Programs for which the answer was once wrong: the first ten lines give the answer that the programs' first lines call right.

They are beside the checkout; TIDEMARK_CASES names their folder. Planned for an RTX-4090, or recorded on the CPU.
"""

import os
import re
import sys
import unittest
from pathlib import Path

from phantom import Case, driver

CASES = Path(os.environ["TIDEMARK_CASES"])

# For each: how it is recorded, the command, and regular expressions for its first ten lines.
ANSWERS = [
    ("checkpoint_whole_model", "plan", "patterns", [r"One checkpoint recomputes several", r"checkpoint each layer by itself"]),
    ("inference_without_no_grad", "plan", "patterns", [r"backward pass that never runs", r"torch\.no_grad\(\)"]),
    ("kept_for_an_epoch", "plan", "patterns", [r"Tensors of several steps are kept and then freed together .*192\.0 MiB", r"training_step", r"detach\(\)"]),
    ("kept_for_an_epoch", "plan", "leaks", [r"kept for several steps and then freed together", r"100\.0 MiB .*training_step \(.*:12\)", r"<module> \(.*:18\)"]),
    ("eval_concatenates", "plan", "explain", [r"evaluate \(.*concatenate them once: saves ~10\.\d GiB"]),
    ("retry_in_except", "plan", "explain", [r"try again after the except block .*saves ~19\.0 GiB"]),
    ("foreach_optimizer", "plan", "patterns", [r"temporary tensors for all parameters at once .*768\.2 MiB", r"fused=True"]),
    ("leak_halved_by_new_models", "plan", "leaks", [r"grow by 4\.0 MiB per step", r"make \(", r"backward of"]),
    ("mistake_losses_but_hooks", "plan", "leaks", [r"grow by 2\.\d MiB per step", r"Extractor|relu", r"a hook"]),
    ("ddp_map_location", "ranks", "summary", [r"rank 1 allocates on cuda:0, the device of rank 0: 32\.0 MiB .* CUDA context", r"ddp_map_location\.py:12", r"map_location"]),
    ("empty_cache_not_seen", "plan", "summary", [r"at the end 0 B \(0 B reserved\)"]),
    ("pinned_pow2", "plan", "ledger", [r"2\.0 GiB of pinned host memory"]),
    ("no_steps_without_optimizer", "run", "leaks", [r"Leak: .* by 1\.2 MiB per step"]),
    ("host_growth_not_tensors", "run", "leaks", [r"No leak", r"Host memory of the process grows", r"profiler"]),
    ("snapshot_symbolized_libraries", "snapshot", "table", [r"16\.0 MiB .*train \(me/train\.py:9\)"]),
    ("snapshot_symbolized_libraries", "snapshot", "summary --all", [r"stacks: both"]),
]

# Output of scripts that start tidemark themselves: the recorded program is not harmed.
HARMLESS = {
    "run_audit_hook.py": r"(?s)^plain (\d+) .*\nrecorded \1 ",
    "question_audit_hook.py": r"rc of the program 0",
    "naming_script_swallows_alarm.py": r"recorded: raised [1-9]\d* .*swallowed 0 ",
    "question_swallows_alarm.py": r"raised [1-9]\d* caught \d+ swallowed 0",
    "no_proc_does_not_start.sh": r"started\nrc 0",
    "leak_after_program_end.sh": r"the program ended before the next query\n.*\n +__main__\.k, .*: __main__\.k\[",
}


class Cases(Case):
    def record_case(self, name, how):
        """The recordings, or the snapshot."""
        program = [driver.PYTHON, str(CASES / f"{name}.py")]
        if how == "run":
            self.record_well(program)
            return [self.output]
        if how == "snapshot":
            driver.run(program, cwd=self.folder)
            return [*self.folder.glob("*.pickle")]
        if how == "ranks":
            program = [driver.PYTHON, str(Path(__file__).with_name("rank_launcher.py")), program[1]]
        options = ["--gpu", "RTX-4090", "--devices", "2", "--steps", "0", "--python", driver.PYTHON, "--force", "-o", str(self.output)]
        driver.run([driver.TIDEMARK, "plan", *options, "--", *program], cwd=self.folder)
        return sorted(self.folder.glob("*.tide"))

    def test_first_lines(self):
        for name, how, command, expected in ANSWERS:
            with self.subTest(name):
                files = self.record_case(name, how)
                lines = self.read(*command.split(), *files).decode().splitlines()[:12]
                for text in expected:
                    self.assertTrue(re.search(text, "\n".join(lines)), f"{text}\n" + "\n".join(lines))
                for file in files:
                    file.unlink()

    def test_programs_are_not_harmed(self):
        variables = {"TIDEMARK": driver.TIDEMARK, "PY": driver.PYTHON, "SECS": "15", "WATCH": "6"}
        for script, expected in HARMLESS.items():
            with self.subTest(script):
                interpreter = sys.executable if script.endswith(".py") else "/bin/sh"
                done = driver.run([interpreter, str(CASES / script)], cwd=self.folder, env=driver.environment(**variables))
                self.assertRegex(done.stdout.decode(), expected)


if __name__ == "__main__":
    unittest.main()
