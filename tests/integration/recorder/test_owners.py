"""Memory by owner, compared with the tensors themselves."""

import json
import unittest

from driver import Case, program


class Owners(Case):
    def test_a_model_in_training(self):
        path = self.folder / "facts.json"
        self.record_well(program("owners.py", path))
        facts = json.loads(path.read_text())

        result = json.loads(self.read("breakdown", "--at", "end", "--format", "json", self.folder / "run.tide"))
        device = next(device for device in result["devices"] if device["device"] == "cpu")
        found = {entry["category"]: entry for entry in device["categories"]}
        sizes = {name: entry["bytes"] for name, entry in found.items()}
        self.assertEqual({name: sizes.get(name, 0) for name in facts}, facts)
        self.assertEqual(sum(sizes.values()), device["allocated_bytes"])
        self.assertLess(sizes.get("unknown", 0), 0.02 * device["allocated_bytes"])
        self.assertEqual(found["parameter"]["confidence"], "exact")
        self.assertEqual(found["gradient"]["confidence"], "estimated")  # the program is asked at steps 1, 2 and 4


if __name__ == "__main__":
    unittest.main()
