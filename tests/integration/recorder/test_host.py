"""The host's memory in recordings, compared with the kernel's values for the same processes at the same moment."""

import json
import signal
import subprocess
import time
import unittest
from pathlib import Path

from driver import PATIENCE_S, PYTHON, TIDEMARK, Case, environment, memory_group, program, read_until, real_pytorch, run

MIB = 1 << 20
# The kernel sums its per-processor counters only now and then, and Python continues a little.
TOLERANCE = 8 * MIB


def resident(pid):
    wanted = {"RssAnon": "anon_bytes", "RssFile": "file_bytes", "RssShmem": "shmem_bytes"}
    lines = (line.split(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {wanted[name]: int(value.split()[0]) << 10 for name, value in lines if name in wanted}


class Host(Case):
    def samples(self):
        """All samples of the host's parts that are in the file so far."""
        dump = run([TIDEMARK, "dump", "--format", "json", str(self.output)])
        lines = (json.loads(line) for line in dump.stdout.splitlines() if b'"host_parts"' in line)
        return [line["host_parts"] for line in lines]

    @real_pytorch
    def test_workers_by_name_with_what_the_kernel_counts(self):
        command = self.record_command(program("host_dataloader.py"), "--sample-interval", "100ms")
        started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, env=environment()
        )
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.stderr.close)
        said = json.loads(read_until(started.stdout, b"\n"))
        workers = said["workers"]
        sample = self.wait_for_workers(workers)
        kernel = {pid: resident(pid) for pid in [said["main"], *workers]}
        started.stdin.close()
        self.assertEqual(started.wait(PATIENCE_S), 0)
        by_pid = {process["pid"]: process for process in sample["processes"]}
        for pid, counted in kernel.items():
            for name, size in counted.items():
                self.assertAlmostEqual(by_pid[pid][name], size, delta=TOLERANCE, msg=f"{pid} {name}")
        self.assertEqual(by_pid[said["main"]]["role"], "main")
        self.assertTrue(by_pid[said["main"]]["recorded"])
        self.assertGreaterEqual(by_pid[said["main"]]["shmem_bytes"], 24 * MIB)
        for number, pid in enumerate(workers):
            with self.subTest(pid=pid):
                worker = by_pid[pid]
                self.assertEqual((worker["role"], worker["number"], worker["count"]), ("data_worker", number, 2))
                self.assertEqual(worker["parent_pid"], said["main"])
                # Read less often: in this sample, or not.
                self.assertLessEqual(worker["private_bytes"] or 0, worker["rss_bytes"])
        text = self.read("ledger", self.output, "--device", "host", "--at", f"{sample['time_ns'] / 1e9 + 0.001:.6f}s").decode()
        self.assertIn(f"DataLoader worker 0 of 2 (pid {workers[0]})", text)

    def test_who_was_killed_by_the_oom_killer_and_why(self):
        group = memory_group(600 * MIB)
        if group is None:
            self.skipTest("no control group with a limit can be made here")
        grow = "import torch, time\nkept = []\nwhile True: kept.append(torch.ones(4 << 18)); time.sleep(0.02)"
        try:
            enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
            done = run(["sh", "-c", enter, "sh", *self.record_command([PYTHON, "-c", grow])])
        finally:
            group.rmdir()
        self.assertEqual(done.returncode, -signal.SIGKILL)
        (killed,) = self.summary()["killed"]
        self.assertEqual((killed["process"]["role"], killed["process"]["recorded"]), ("main", True))
        self.assertIn(killed["evidence"], ("kernel_log", "exit_signal"))
        self.assertEqual((killed["scope"], killed["cgroup_limit_bytes"]), ("cgroup", 600 * MIB))
        self.assertGreater(killed["process"]["anon_bytes"], 300 * MIB)
        self.assertEqual(killed["before"]["scope"], "cgroup")
        text = self.read("explain", self.output).decode()
        self.assertIn("killed by the kernel's OOM killer", text)
        self.assertIn("its control group had reached its limit of 600.0 MiB", text)

    def wait_for_workers(self, pids):
        """A sample that has them as workers, with all their memory."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for sample in reversed(self.samples()):
                workers = [process for process in sample["processes"] if process["role"] == "data_worker"]
                held = [worker["anon_bytes"] for worker in workers if worker["pid"] in pids]
                if len(held) == 2 and min(held) >= (48 + 32) * MIB:
                    return sample
            time.sleep(0.2)
        raise AssertionError("no sample has both workers")


if __name__ == "__main__":
    unittest.main()
