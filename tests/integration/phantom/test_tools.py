"""NVML, CUPTI and NVRTC: known values are returned, the rest is not supported."""

import unittest

from phantom import NAME, TOTAL, Case, driver

NVML_ERROR_INVALID_ARGUMENT = 2


class Tools(Case):
    def test_profiler_and_nvml(self):
        kernels = self.folder / "kernels"
        kernels.mkdir()
        # The planned program is another recorder, in which driver calls can be requested; so the plan itself has no result.
        recorded = self.folder / "tools.tide"
        command = [driver.TIDEMARK, "run", "--driver", "on", "-o", str(recorded), "--", *driver.program("../phantom/tools.py")]
        _, result, stderr = self.plan(*command, code=2, PYTORCH_KERNEL_CACHE_PATH=str(kernels))
        # No program with a device may ever load code that was not compiled.
        self.assertEqual(list(kernels.iterdir()), [])
        self.assertIn("aten::linear", result["operations"])
        self.assertGreater(result["device_bytes"], 0)
        self.assertEqual(result["count"], 2)
        self.assertEqual(result["name"], NAME)
        self.assertEqual(result["uuid"], result["torch_uuid"])
        total, free, used = result["memory"]
        self.assertEqual([free, total], result["mem_get_info"])
        self.assertEqual(total, TOTAL)
        self.assertEqual(used, total - free)
        self.assertEqual(result["missing_device"], NVML_ERROR_INVALID_ARGUMENT)
        self.assertFalse(result["utilization"])
        # CUPTI is called, because the driver loads the tool in the environment, and its result is printed.
        self.assertIn("CUPTI failed (CUptiResult 27)", stderr)
        self.assertEqual(self.issue_ids("tools.tide"), {"driver_off"})


if __name__ == "__main__":
    unittest.main()
