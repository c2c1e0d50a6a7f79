"""Recurrent networks and sparse matrices: a plan's requests and peaks are those of an H200, to the byte."""

import json
import unittest
from pathlib import Path

from phantom import Case, driver

DATA = Path(__file__).resolve().parents[2] / "data" / "phantom"
MEASURED_TORCH = b"2.11.0"


def is_measured_torch():
    version = driver.run([driver.PYTHON, "-c", "import importlib.metadata as m; print(m.version('torch'))"]).stdout
    return version.startswith(MEASURED_TORCH)


class Measured(Case):
    def measured(self, name):
        return json.loads((DATA / f"{name}_h200.json").read_text())

    def test_peaks_of_recurrent_networks(self):
        _, peaks, _ = self.plan("recurrent.py", "programs", devices=1)
        expected = self.measured("recurrent")["programs"]
        self.assertEqual(peaks.keys(), expected.keys())
        if is_measured_torch():
            self.assertEqual(peaks, expected)

    def test_requests_of_recurrent_networks(self):
        plan, requests, _ = self.plan("recurrent.py", "calls", str(DATA / "recurrent_h200.json"), devices=1)
        for call, sizes in zip(self.measured("recurrent")["calls"], requests, strict=True):
            self.assertEqual(sizes, call["requests"], call)
        if is_measured_torch():
            self.assertEqual(plan["cudnn_estimate_count"], 0)

    def test_requests_of_sparse_matrices(self):
        plan, printed, _ = self.plan("sparse.py", str(DATA / "sparse_h200.json"), devices=1)
        for call, requests in zip(self.measured("sparse")["calls"], printed["calls"], strict=True):
            self.assertEqual(requests, call["requests"], call)
        # 300,000 multiplications, evenly distributed over 3,000,000 places.
        for nonzeros in printed["products"]:
            self.assertAlmostEqual(nonzeros, 285490, delta=1000)
        self.assertGreater(plan["cusparse_estimate_count"], 0)


if __name__ == "__main__":
    unittest.main()
