"""NVML, CUPTI and NVRTC: what is known is said, the rest is not supported."""

import unittest

from phantom import PROFILE, Case

NVML_ERROR_INVALID_ARGUMENT = 2


class Tools(Case):
    profile = PROFILE | {"devices": 2}

    def test_profiler_and_nvml(self):
        kernels = self.folder / "kernels"
        kernels.mkdir()
        result, stderr = self.record_program(
            "tools.py", options=("--driver", "on"), PYTORCH_KERNEL_CACHE_PATH=str(kernels)
        )
        # No program with a device may ever load what was not compiled.
        self.assertEqual(list(kernels.iterdir()), [])
        self.assertNotIn("has no answer", stderr)
        self.assertIn("aten::linear", result["operations"])
        self.assertGreater(result["device_bytes"], 0)
        self.assertEqual(result["count"], 2)
        self.assertEqual(result["name"], PROFILE["name"])
        self.assertEqual(result["uuid"], result["torch_uuid"])
        total, free, used = result["memory"]
        self.assertEqual([free, total], result["mem_get_info"])
        self.assertEqual(total, PROFILE["memory"])
        self.assertEqual(used, total - free)
        self.assertEqual(result["missing_device"], NVML_ERROR_INVALID_ARGUMENT)
        self.assertFalse(result["utilization"])
        # CUPTI is asked, as the driver loads the tool that the environment names, and its answer is told.
        self.assertIn("CUPTI failed (CUptiResult 27)", stderr)
        self.assertEqual(self.issue_ids(), {"driver_off"})


if __name__ == "__main__":
    unittest.main()
