"""Programs for which the answer was once wrong: the first ten lines say what their own first lines call right.

They lie beside the checkout; TIDEMARK_CASES names their folder. Planned for an RTX-4090, or recorded on the CPU.
"""

import os
import re
import unittest
from pathlib import Path

from phantom import Case, driver

CASES = Path(os.environ["TIDEMARK_CASES"])

# For each how it is recorded, the command, and what its first ten lines have to say: regular expressions.
ANSWERS = {
    "checkpoint_whole_model": ("plan", "patterns", [r"One checkpoint recomputes several", r"checkpoint each layer by itself"]),
    "inference_without_no_grad": ("plan", "patterns", [r"backward pass that never runs", r"torch\.no_grad\(\)"]),
    "kept_for_an_epoch": ("plan", "patterns", [r"Tensors of several steps are kept and then freed together .*192\.0 MiB", r"detach\(\)"]),
    "eval_concatenates": ("plan", "explain", [r"concatenate them once: -10\.\d GiB, evaluate"]),
    "retry_in_except": ("plan", "explain", [r"try again after the except block .*-19\.0 GiB"]),
    "foreach_optimizer": ("plan", "patterns", [r"temporary tensors for all parameters at once", r"fused=True"]),
    "leak_halved_by_new_models": ("plan", "leaks", [r"grow by 4\.0 MiB per step", r"make \(", r"backward of"]),
    "mistake_losses_but_hooks": ("plan", "leaks", [r"grow by 2\.\d MiB per step", r"Extractor|relu", r"a hook"]),
    "empty_cache_not_seen": ("plan", "summary", [r"at end +0 B allocated, 0 B reserved"]),
    "pinned_pow2": ("plan", "ledger", [r"2\.0 GiB of pinned host memory"]),
    "no_steps_without_optimizer": ("run", "leaks", [r"Leak: .* by 1\.2 MiB per step"]),
    "host_growth_not_tensors": ("run", "leaks", [r"No leak", r"Host memory of the process grows", r"profiler"]),
}


class Cases(Case):
    def record_case(self, name, how):
        program = [driver.PYTHON, str(CASES / f"{name}.py")]
        if how == "run":
            self.record_well(program)
            return self.output
        options = ["--gpu", "RTX-4090", "--steps", "0", "--python", driver.PYTHON, "--force", "-o", str(self.output)]
        driver.run([driver.TIDEMARK, "plan", *options, "--", *program], cwd=self.folder)
        return self.output

    def test_first_lines(self):
        for name, (how, command, expected) in ANSWERS.items():
            with self.subTest(name):
                lines = self.read(command, self.record_case(name, how)).decode().splitlines()[:12]
                for text in expected:
                    self.assertTrue(re.search(text, "\n".join(lines)), f"{text}\n" + "\n".join(lines))
                self.output.unlink()


if __name__ == "__main__":
    unittest.main()
