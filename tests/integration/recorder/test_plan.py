"""A plan's values equal PyTorch's counters on the phantom GPU; programs that cannot be planned are an error with exit code 2."""

import json
import os
import signal
import subprocess
import unittest
from pathlib import Path

from driver import (
    PATIENCE_S,
    PYTHON,
    TIDEMARK,
    Case,
    environment,
    has_cuda,
    memory_group,
    program,
    read_until,
    run,
    start,
)

HAS_CUDA = has_cuda()
GIB = 1 << 30


class Plan(Case):
    def plan(self, *options, command=None, **variables):
        options = options if "--gpu" in options else ("--gpu", "H200", *options)
        command = [TIDEMARK, "plan", "-o", str(self.output), *options, "--", *(command or program("planned.py"))]
        return run(command, env=environment(**variables))

    def assert_error(self, done, message):
        self.assertEqual((done.returncode, b"fit on" in done.stdout, b"fits" in done.stdout), (2, False, False), done.stderr)
        self.assertIn(message, done.stderr.decode())

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_figures_are_those_of_pytorch(self):
        # A variable for real GPUs does not affect the planned one.
        options = ("--gpu", "h100-80gb", "--memory", "24GiB", "--steps", "0", "--format", "json")
        done = self.plan(*options, CUDA_VISIBLE_DEVICES="1,2")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        said = json.loads(next(line for line in done.stderr.splitlines() if line.startswith(b"{")))
        (device,) = plan["devices"]
        self.assertEqual((device["peak_allocated_bytes"], device["peak_reserved_bytes"]), (said["allocated"], said["reserved"]))
        self.assertEqual((said["name"], said["total"], said["devices"]), ("NVIDIA H100 80GB HBM3", 24 * GIB, 1))
        self.assertEqual(said["listed"], f"NVIDIA H100 80GB HBM3, {24 << 10} MiB\n")
        # Without the stand-ins it would name no GPU: these are the bytes of "tidemark-phanto" and 0.
        self.assertEqual(said["visible"], "GPU-74696465-6d61-726b-2d70-68616e746f00")
        # At least weights, gradients and two moments of 4 * (1024 * 1024 + 1024) parameters.
        self.assertGreater(said["allocated"], 4 * 4 * 4 * (1024 * 1024 + 1024))
        self.assertEqual((plan["fits"], plan["gpu"], plan["memory_bytes"], plan["exit_code"]), (True, "H100-80GB", 24 * GIB, 0))
        self.assertEqual((plan["steps"], plan["stopped"], device["steps"]), (3, False, 3))
        self.assertTrue(plan["context_measured"])
        self.assertEqual(device["device_used_bytes"], said["reserved"] + plan["context_bytes"] + device["driver_bytes"])
        self.assertEqual(device["headroom_bytes"], 24 * GIB - device["device_used_bytes"])
        self.assertEqual((plan["read_count"], plan["unanswered_functions"]), (1, []))
        totals = next(totals for totals in self.summary()["devices"] if totals["device"] == "cuda:0")
        self.assertEqual((totals["peak_allocated_bytes"], totals["peak_reserved_bytes"]), (said["allocated"], said["reserved"]))
        self.check_tensors()

    def check_tensors(self):
        """Every tensor of the model on the GPU is recorded, and is a block at that time."""
        told = [fields for kind, fields in self.dump() if kind == "tensor" and fields["device"] == "cuda:0"]
        size = {
            role: sum(tensor["bytes"] for tensor in told if tensor["role"] == role)
            for role in {tensor["role"] for tensor in told}
        }
        parameters = 4 * 4 * (1024 * 1024 + 1024)
        # Gradients of three steps, and two moments.
        self.assertEqual(size, {"parameter": parameters, "gradient": 3 * parameters, "optimizer_state": 2 * parameters})
        live, events = {}, self.events()[::-1]
        for tensor in sorted(told, key=lambda tensor: tensor["time_ns"]):
            while events and events[-1]["time_ns"] <= tensor["time_ns"]:
                event = events.pop()
                live.pop(event.get("address"), None)
                if event["kind"] == "allocate" and event["device"] == "cuda:0":
                    live[event["address"]] = event["size"]
            self.assertEqual(live[tensor["address"]], tensor["storage_bytes"], tensor)

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_nothing_is_run_after_the_last_step(self):
        done = self.plan("--steps", "2", command=program("planned.py", "--steps", "9", "--worker"))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.decode().splitlines()
        self.assertEqual([line for line in lines if line.startswith(("step", "trained"))], lines[:2])
        self.assertIn("used in 2 training steps", done.stdout.decode())
        for line in lines[:2]:
            self.assertFalse(Path("/proc", line.split()[-1]).exists(), "the process that loaded the data is left")
        self.assertEqual(json.loads(self.read("leaks", "--format", "json", self.output))["steps"]["count"], 2)
        self.assertNotIn("incomplete", self.read("summary", self.output).decode())

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_ranks(self):
        done = self.plan("--nproc", "2", "--format", "json", command=program("planned.py", "--steps", "9", "--ranks"))
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        found = [(device["rank"], device["gpu_index"], device["steps"], device["fits"]) for device in plan["devices"]]
        self.assertEqual((sorted(found), plan["stopped"]), ([(0, 0, 3, True), (1, 1, 3, True)], True))
        self.assertEqual(done.stderr.count(b"with the data of"), 2 * 3)
        self.assertNotIn(b"Traceback", done.stderr)

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_a_program_that_does_not_fit(self):
        done = self.plan("--memory", "2GiB", "--steps", "0", command=program("planned.py", "--blocks", "20"))
        self.assertEqual(done.returncode, 1, done.stderr)
        text = done.stdout.decode()
        self.assertIn("does not fit on H200: out of memory on cuda:0", text)
        self.assertIn(
            "CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of 2.00 GiB", done.stderr.decode()
        )
        self.assertIn("planned.py:66", text)  # the holder of the memory
        failure = json.loads(self.read("explain", "--format", "json", self.output))["failures"][0]
        self.assertEqual(failure["capacity_bytes"], 2 * GIB)

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_a_program_that_fails_or_uses_no_gpu_has_no_plan(self):
        for options, message in {
            ("--fail",): "the program failed with exit code 1 before the plan was complete; it had read results from the GPU",
            ("--cpu",): "the program allocated no memory on a GPU",
            ("--steps", "0"): "no training step was found",
        }.items():
            self.assert_error(self.plan("--steps", "9", command=program("planned.py", *options)), message)
            self.assertEqual(self.recordings(), [])

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_host_memory_that_pytorch_cannot_get(self):
        # More than a process has addresses for, on any machine.
        done = self.plan(command=[PYTHON, "-c", "import torch; torch.empty(1 << 47, dtype=torch.uint8)"])
        self.assert_error(
            done, "failed with exit code 1 before the plan was complete; PyTorch could not allocate 128.0 TiB of host memory"
        )
        self.assertEqual(self.recordings(), [])

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_a_program_that_the_kernel_kills_for_memory(self):
        group = memory_group(256 << 20)
        if group is None:
            self.skipTest("no control group with a limit can be made here")
        try:
            command = [
                TIDEMARK,
                "plan",
                "--gpu",
                "H200",
                "-o",
                str(self.output),
                "--",
                PYTHON,
                "-c",
                "kept = bytearray(1 << 30)",
            ]
            enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
            self.assert_error(
                run(["sh", "-c", enter, "sh", *command]), "host memory ran out, and the kernel killed the program; "
            )
        finally:
            group.rmdir()

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_a_program_that_somebody_kills(self):
        done = self.plan(command=[PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"])
        self.assert_error(done, "tidemark: signal 9 ended the program before the plan was complete\n")

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_a_program_that_waits_forever_is_ended_by_ctrl_c(self):
        command = [PYTHON, "-c", "import time; print('waits', flush=True); time.sleep(600)"]
        with start([TIDEMARK, "plan", "--gpu", "H200", "-o", str(self.output), "--", *command]) as process:
            read_until(process.stdout, b"waits")
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 2, stderr)
        self.assertIn(b"the program was interrupted before a training step was complete", stderr)
        self.assertEqual(self.recordings(), [])

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_what_a_program_that_does_not_fit_needs(self):
        """It is the use of a plan on a larger GPU. A program that runs to its end is not run twice."""
        (device,) = json.loads(self.plan("--steps", "1", "--format", "json").stdout)["devices"]
        small = ("-f", "--memory", f"{device['device_used_bytes'] - (8 << 20)}")
        done = self.plan(*small, "--steps", "1")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"does not fit on H200", done.stdout)
        needed = f"needs {device['device_used_bytes'] / (1 << 20):.1f} MiB on each GPU: fits on "
        self.assertIn(needed, done.stdout.decode())
        done = self.plan(*small, "--steps", "0")
        self.assertEqual((done.returncode, b"needs" in done.stdout), (1, False), done.stderr)

    @unittest.skipIf(HAS_CUDA, "this PyTorch is built with CUDA")
    def test_a_pytorch_without_cuda(self):
        self.assert_error(self.plan(), "is built without CUDA; a plan needs a build for CUDA, which needs no GPU")
        self.assertEqual(self.recordings(), [])

    def test_wrong_arguments(self):
        for options, message in {
            ("--gpu", "X9"): "unknown GPU; known: T4, ",
            ("--gpu", "no/such.gpu"): "no/such.gpu: this GPU profile cannot be read",
            ("--devices", "0"): "--devices 0: from 1 to 64",
            ("--nproc", "0"): "--nproc 0: from 1 to 64",
            ("--memory", "1MB"): "less than the minimum of 256.0 MiB",
        }.items():
            self.assert_error(self.plan(*options), message)
        self.assert_error(self.plan(command=["bash", "-c", "true"]), "bash: is not started by a Python interpreter")
        done = self.plan("--nproc", "2", command=[PYTHON, "-c", "pass"])
        self.assert_error(done, "a program in the command line (-c) has no ranks")
        self.assertEqual(self.recordings(), [])

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_a_gpu_described_in_a_file(self):
        """The phantom's driver reports the profile that it was started with."""
        profile = (
            self.read("devices", "--profile", "RTX-4090")
            .replace(b"memory = 25250627584", b"memory = 8GiB")
            .replace(b"4090", b"9090")
        )
        described = self.folder / "mine.gpu"
        described.write_bytes(profile)
        done = self.plan(
            "--gpu",
            str(described),
            command=[PYTHON, "-c", f"import os; os.execl({TIDEMARK!r}, 'tidemark', 'devices', '--profile', 'auto')"],
        )
        self.assertEqual(done.returncode, 2)  # no PyTorch in it
        fields = [line.split("  #")[0] for line in profile.decode().splitlines() if "context" not in line]
        said = [line.split("  #")[0] for line in done.stdout.decode().splitlines() if "context" not in line]
        self.assertIn("[RTX-9090]", fields)
        self.assertEqual(said[1:], [field.replace("8GiB", str(8 * GIB)) for field in fields[1:]])

    @unittest.skipUnless(HAS_CUDA, "this PyTorch is built without CUDA")
    def test_without_a_recording_the_program_does_not_run(self):
        os.mkfifo(self.output)  # it is not a recording; without the phantom GPU the program could use a real one
        self.assert_error(self.plan("--force", command=[PYTHON, "-c", "print('ran')"]), "the program does not run")

    def test_nothing_is_left_in_the_temporary_folder(self):
        folder = self.folder / "tmp"
        folder.mkdir()
        command = [TIDEMARK, "plan", "--gpu", "H200", "-o", str(self.output), "--", PYTHON, "-c", "pass"]
        subprocess.run(command, env={"TMPDIR": str(folder), "PATH": "/usr/bin:/bin"}, capture_output=True, check=False)
        self.assertEqual(list(folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
