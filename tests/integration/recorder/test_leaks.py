"""Results of `tidemark leaks` and `patterns` for retained autograd graphs, compared with autograd's saved tensors and the fixed program."""

import json
import unittest

from driver import Case, program


class RetainedGraphs(Case):
    def test_graphs_of_losses_that_are_kept(self):
        self.record_well(program("retained.py", self.folder))
        found = {}
        for name in self.recordings():
            leaks = json.loads(self.read("leaks", "--by", "module", "--format", "json", self.folder / name))
            patterns = json.loads(self.read("patterns", "--device", "cpu", "--format", "json", self.folder / name))
            found[leaks["process"]["pid"]] = leaks, patterns["devices"][0]
        facts = {name: json.loads((self.folder / name).read_text()) for name in ("graphs", "values")}
        leaks, device = found[facts["graphs"]["pid"]]
        right, right_device = found[facts["values"]["pid"]]

        self.assertEqual(leaks["verdict"], "leak")
        (group,) = leaks["groups"]
        self.assertEqual((group["kind"], group["confidence"]), ("autograd_graph", "estimated"))
        graph = facts["graphs"]["graph_bytes"]
        self.assertEqual(group["bytes_per_step"], graph)
        self.assertEqual(leaks["bytes_per_step"], graph)
        self.assertEqual([frame["function"] for frame in group["retained_by"]["frames"]][:2], ["<module>", "validate"])
        self.assertEqual(group["caller"]["function"], "validate")
        self.assertEqual([leak["group"] for leak in leaks["leaks"]], [0] * group["leak_count"])
        self.assertAlmostEqual(sum(row["bytes_per_step"] for row in group["categories"]), graph)
        (modules,) = leaks["by"]
        rates = {row["module"]: row["bytes_per_step"] for row in modules["modules"]}
        self.assertAlmostEqual(sum(rates.values()), graph)
        # Results of the two large modules: 256 x 256 numbers of 4 bytes each. Both are saved.
        self.assertAlmostEqual(rates["0"], 256 * 256 * 4)
        self.assertAlmostEqual(rates["1"], 256 * 256 * 4)

        # The last graph is alive whenever the next step is trained: it counts as freed when that step's optimizer runs.
        (advice,) = [advice for advice in device["advice"] if advice["kind"] == "retained_graph"]
        saving = device["peak_allocated_bytes"] - right_device["peak_allocated_bytes"]
        self.assertLessEqual(advice["avoidable_peak_bytes"], saving)
        self.assertGreaterEqual(advice["avoidable_peak_bytes"], saving - graph)

        self.assertEqual((right["verdict"], right["groups"]), ("no_leak", []))
        self.assertNotIn("retained_graph", [advice["kind"] for advice in right_device["advice"]])


if __name__ == "__main__":
    unittest.main()
