"""The names of recordings, and what happens to existing files."""

import unittest

from driver import ALLOCATE, TIDEMARK, Case, environment, program, real_pytorch, run


class Files(Case):
    def test_an_existing_file_is_replaced_only_by_force(self):
        self.output.write_text("precious")
        refused = self.record(ALLOCATE)
        self.assertEqual((refused.returncode, refused.stdout), (2, b""), "refused before the program starts")
        self.assertIn(f"{self.output}: already exists", refused.stderr.decode())
        self.assertEqual(self.output.read_text(), "precious")
        self.assertEqual(self.record_well(ALLOCATE, "--force").stdout, b"10.0\n")
        self.assertIn(40, self.sizes())

    @real_pytorch
    def test_named_after_the_script(self):
        run([TIDEMARK, "run", "--", *program("os_exit.py")], cwd=self.folder)
        (name,) = self.recordings()
        self.assertRegex(name, r"^os_exit-\d{8}-\d{6}\.tide$")

    def test_ranks_of_slurm(self):
        variables = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_TASKS": "8"}
        self.record_well(ALLOCATE, env=environment(**variables))
        process = self.summary("run.rank3.tide")["process"]
        self.assertEqual((process["rank"], process["local_rank"], process["world_size"]), (3, 1, 8))

    def test_allocator_settings(self):
        self.record_well(ALLOCATE)
        self.assertEqual(self.summary()["allocator_settings"], "", "the defaults")
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            self.record_well(ALLOCATE, "--force", env=environment(**{name: "max_split_size_mb:64"}))
            self.assertEqual(self.summary()["allocator_settings"], "max_split_size_mb:64")


if __name__ == "__main__":
    unittest.main()
