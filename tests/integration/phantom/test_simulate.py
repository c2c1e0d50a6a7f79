"""tidemark simulate, given one run of a program, compared with runs of the program under the other settings."""

import json
import unittest
from pathlib import Path

from phantom import Case, driver

EXACT = (
    "max_split_size_mb:32",
    "roundup_power2_divisions:8",
    "garbage_collection_threshold:0.6",
    "max_split_size_mb:64,garbage_collection_threshold:0.8",
)
EXPANDABLE = "expandable_segments:True"


class Simulate(Case):
    def simulate(self, snapshot, *options):
        sets = [option for settings in (*EXACT, EXPANDABLE) for option in ("--set", settings)]
        command = [driver.TIDEMARK, "simulate", snapshot, *sets, "--format", "json", *options]
        done = driver.run(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, simulated, measured):
        self.assertEqual(simulated["reserved_error_bytes"], 0)
        runs = {run["settings"]: run["devices"][0] for run in [simulated["as_recorded"], *simulated["runs"]]}
        for settings in ("", *EXACT):
            with self.subTest(settings):
                counted = measured[settings]
                self.assertEqual(counted.pop("failures"), 0)
                self.assertEqual({key: runs[settings][key] for key in counted}, counted)
        expandable = measured[EXPANDABLE]["peak_reserved_bytes"]
        self.assertAlmostEqual(runs[EXPANDABLE]["peak_reserved_bytes"], expandable, delta=expandable // 100)
        self.assertEqual(len(simulated["runs"]), len(EXACT) + 1)

    def test_simulated_settings_are_those_of_real_runs(self):
        snapshot = self.folder / "snapshot.pickle"
        _, measured, _ = self.plan("settings.py", str(snapshot), "", *EXACT, EXPANDABLE, devices=1)
        limit = ("--memory", str(measured["limit_bytes"]))
        by_pytorch = self.simulate(snapshot, *limit, "--allocator", "pytorch", "--python", driver.PYTHON)
        self.assertEqual(by_pytorch["replayed_by"], "pytorch")
        by_model = self.simulate(snapshot, *limit, "--allocator", "model")
        self.assertEqual(by_model["replayed_by"], "model")
        self.check(by_pytorch, json.loads(json.dumps(measured["settings"])))
        # The model places segments at other addresses, which decide between free blocks of one size.
        by_setting = {run["settings"]: run for run in by_pytorch["runs"]}
        for run in by_model["runs"]:
            same = by_setting[run["settings"]]
            self.assertEqual(run["retry_count"], same["retry_count"])
            self.assertAlmostEqual(run["peak_reserved_bytes"], same["peak_reserved_bytes"], delta=same["peak_reserved_bytes"] // 100)

    def test_recordings_have_their_settings(self):
        """A replay with them comes to the peak that PyTorch counted."""
        program = str(Path(__file__).parent.parent / "recorder" / "fragmenting_gpu.py")
        for settings in ("", "max_split_size_mb:64", "roundup_power2_divisions:4", EXPANDABLE):
            with self.subTest(settings):
                _, counted, _ = self.plan(driver.PYTHON, program, devices=1, PYTORCH_CUDA_ALLOC_CONF=settings)
                simulated = json.loads(self.read("simulate", "--search", "--allocator", "model", "--format", "json", self.output))
                self.assertTrue(simulated["settings_known"])
                recorded = simulated["as_recorded"]
                self.assertEqual((recorded["settings"], recorded["peak_reserved_bytes"]), (settings, counted["max_memory_reserved"]))


if __name__ == "__main__":
    unittest.main()
