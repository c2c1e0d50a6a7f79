"""torch.compile: Triton compiles and loads its kernels through the phantom's driver, and their buffers have the model's lines."""

import collections
import csv
import re
import shutil
import sysconfig
import unittest
from pathlib import Path

from phantom import Case

STEPS = 3
GENERATED = re.compile(r"/c[a-z2-7]{51}\.py:\d+\)$")
OF_THE_MODEL = re.compile(r"forward \[compiled (forward|backward)\] \(.*compiled\.py:(\d+)\)$")


class Compile(Case):
    def test_forward_and_backward(self):
        if shutil.which("gcc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
            self.skipTest("Triton needs gcc and Python.h")
        _, result, _ = self.plan("compiled.py", TRITON_CACHE_DIR=str(self.folder / "triton"), TORCHINDUCTOR_COMPILE_THREADS="1")
        self.assertEqual(result["graphs"], 1)
        self.assertTrue(all(result["gradients"]))
        # The loaded kernels had been compiled to machine code for the device.
        self.assertTrue(list(self.folder.glob("triton/**/*.cubin")))
        recorded = self.device(device="cuda:0")
        self.assertEqual(recorded["peak_allocated_bytes"], result["peak_allocated"])
        self.assertEqual(recorded["peak_reserved_bytes"], result["peak_reserved"])
        self.check_lines(result["lines"])

    def check_lines(self, lines):
        """`lines`: text of the model's lines → number."""
        blocks = self.folder / "blocks.csv"
        self.read("export", "--to", "csv", "--stacks", "-o", blocks, self.output)
        at_line = collections.Counter()  # (line of the model, graph) → bytes
        nodes_at_line = collections.defaultdict(set)
        compiled = 0
        with open(blocks, newline="") as file:
            for block in csv.DictReader(file):
                frames = block["stack"].split(";")  # outermost first
                if "(backward)" in frames:  # followed by the forward side of an autograd node
                    frames = frames[frames.index("(backward)") + 1 :]
                generated = [index for index, frame in enumerate(frames) if GENERATED.search(frame)]
                if not block["device"].startswith("cuda") or not generated:
                    continue
                size = int(block["size_bytes"])
                compiled += size
                found = [match for frame in frames[generated[-1] + 1 :] if (match := OF_THE_MODEL.search(frame))]
                if not found or int(found[-1][2]) not in lines.values():
                    continue
                in_backward = any("backward" in frame.split(" (")[0] for frame in frames[: generated[-1]])
                self.assertEqual(found[-1][1], "backward" if in_backward else "forward")
                place = int(found[-1][2]), found[-1][1]
                at_line[place] += size
                nodes_at_line[place].add(frames[generated[-1]].split(" (")[0])
                self.assertIn(f"compiled.py:{place[0]})", block["call_site"])
        self.assertGreaterEqual(sum(at_line.values()), 0.9 * compiled)
        # Operations before the normalization are fused with it. Its result, and for each row mean and variance.
        norm = lines["hidden = self.norm(hidden)"], "forward"
        self.assertEqual(at_line[norm], STEPS * (64 * 512 * 4 + 2 * 512))
        self.assertEqual(nodes_at_line[norm], {"Runner.call [compiled forward: hidden_1, hidden_2]"})
        # Gradients of the weight and of the input.
        last = lines["return self.last(hidden)"], "backward"
        self.assertGreaterEqual(at_line[last], STEPS * (512 * 10 + 64 * 512) * 4)


if __name__ == "__main__":
    unittest.main()
