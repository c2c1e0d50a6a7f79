"""The flight recorder: only the last part is kept, and written on a trigger; otherwise nothing remains."""

import json
import os
import random
import signal
import subprocess
import sys
import unittest

from driver import (
    PYTHON,
    TIDEMARK,
    Case,
    children,
    memory_group,
    program,
    read_until,
    real_pytorch,
    run,
    split_stderr,
    start,
    wait_for,
)

EVERY = 10  # allocations between two lines of growing.py
SEED = int(os.environ.get("TIDEMARK_TEST_SEED", random.SystemRandom().randrange(10**6)))
HOST_LIMIT = 700 << 20
FAILING = """
import torch
kept = [torch.ones(1000) for _ in range(5)]
raise ValueError("no more data")
"""
WAITING = """
import os, signal, sys, torch
kept = torch.ones(1000)
print("ready", flush=True)
for line in sys.stdin:
    more = torch.ones(int(line))
    if int(line) == 7:
        os.kill(os.getppid(), signal.SIGUSR1)
    print("made", flush=True)
"""
HUNGRY = """
import torch
kept = []
while True:
    kept.append(torch.ones(4 << 20))  # 16 MiB
"""


# Each block is allocated by separate code, to which nothing else refers later.
NEW_STACKS = """
import sys, torch
alive = [None] * 8
for n in range(1, 100_001):
    exec(compile("def make(n): return torch.empty(4096 + n, dtype=torch.uint8)", f"made{n}.py", "exec"))
    alive[n % 8] = make(n)
sys.exit(1)
"""


class Keep(Case):
    def keep(self, command, *options, **how):
        return run(self.record_command(command, "--keep", "60s", *options), **how)

    def assert_nothing_left(self, *names):
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), sorted(names))

    def live_bytes(self, name="run.tide"):
        return self.device(name)["end_allocated_bytes"]

    def check_grown(self, said, name="run.tide"):
        """Exactly the last blocks made by growing.py are alive, whatever the window contains of their history."""
        events = self.events(name)
        sizes = [event["size"] for event in events if event["kind"] == "allocate"]
        last = max(sizes) - 4096
        self.assertLessEqual(said, last)
        self.assertLessEqual(last, said + EVERY)
        alive = [sum(4096 + n for n in range(last - count + 1, last + 1)) for count in (8, 9)]
        self.assertIn(self.live_bytes(name), alive)
        self.assertEqual(sorted(sizes), [4096 + n for n in range(min(sizes) - 4096, last + 1)])
        return events

    def test_killed_at_any_instant(self):
        print(f"{self.id()}: TIDEMARK_TEST_SEED={SEED}", file=sys.stderr)
        instants = random.Random(SEED)
        for wanted in (instants.randrange(1, 200), instants.randrange(30_000, 40_000)):
            with self.subTest(lines=wanted):
                self.output.unlink(missing_ok=True)
                command = self.record_command(program("growing.py", "--every", EVERY), "--keep", "1MiB,60s")
                tidemark = self.kill_at_end(start(command))
                lines = b""
                while lines.count(b"\n") < wanted:
                    lines += read_until(tidemark.stdout, b"\n")
                (grower,) = wait_for(lambda pid=tidemark.pid: children(pid), "the program")
                if wanted > 1000:
                    # More than a segment: an eighth of 1 MiB, in which an event takes some 2 bytes.
                    self.check_followed((1 << 20) // 4)
                os.kill(grower, signal.SIGKILL)
                rest, stderr = tidemark.communicate()
                said = int((lines + rest).splitlines()[-1])
                self.assertEqual(tidemark.returncode, -signal.SIGKILL)
                self.check_grown(said)
                self.assert_nothing_left("run.tide")
                self.assertLess(self.output.stat().st_size, 1.5 * (1 << 20))
                issues = {issue["id"] for issue in self.summary()["data_quality"]["issues"]}
                self.assertLessEqual(issues, {"window", "baseline"})
                if wanted > 1000:
                    self.assertIn("window", issues)
                _, said = split_stderr(stderr)
                self.assertIn("The program failed; no out-of-memory error recorded", said[0])
                self.assertIn("run.tide: the last ", said[-1])

    def check_followed(self, events):
        """`summary --follow` shows this many events of the kept window, which is named as its dump will be."""
        command = [TIDEMARK, "summary", "--follow", str(self.output), "--format", "json"]
        followed = self.kill_at_end(start([*command, "--interval", "100ms"]))
        seen, count = b"", 0
        while count < events:  # existing events are shown before all of them have been read
            text, end, seen = read_until(followed.stdout, b"\n}\n", seen).partition(b"\n}\n")
            document = json.loads(text + end)
            self.assertEqual(document["file"], f"{self.output}.kept")
            (device,) = [device for device in document["devices"] if device["device"] == "cpu"]
            self.assertIn(device["end_block_count"], (8, 9))
            count = document["event_count"]
        os.kill(followed.pid, signal.SIGTERM)
        _, errors = followed.communicate()
        self.assertEqual((errors, followed.returncode), (b"", 0))

    def test_recorder_killed_leaves_segments_that_can_be_read(self):
        command = self.record_command(program("growing.py", "--every", EVERY), "--keep", "1MiB")
        tidemark = self.kill_at_end(start(command))
        lines = b""
        while lines.count(b"\n") < 25_000:
            lines += read_until(tidemark.stdout, b"\n")
        (grower,) = wait_for(lambda: children(tidemark.pid), "the program")
        os.kill(tidemark.pid, signal.SIGKILL)
        os.kill(grower, signal.SIGKILL)
        tidemark.communicate()
        kept = self.folder / "run.tide.kept"
        self.assertEqual(kept.stat().st_mode & 0o777, 0o700)
        segments = sorted(kept.glob("*.tide"))
        self.assertGreater(len(segments), 2)
        for segment in segments[:-1]:
            self.assertEqual(segment.stat().st_mode & 0o077, 0)
            self.assertGreater(self.live_bytes(f"run.tide.kept/{segment.name}"), 7 * 4096)

    def test_stacks_without_end(self):
        done = run(self.record_command([PYTHON, "-c", NEW_STACKS], "--keep", "1MiB"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("window", self.issue_ids())
        tables = {kind: {} for kind in ("string", "location", "stack")}
        numbers = []
        for kind, fields in self.dump():
            if kind in tables:
                tables[kind][fields["id"]] = fields
            elif kind == "event" and fields["kind"] == "allocate":
                place = tables["location"][tables["stack"][fields["stack"]]["location"]]
                numbers.append(fields["size"] - 4096)
                self.assertEqual(tables["string"][place["file"]]["text"], f"made{numbers[-1]}.py")
        self.assertLess(len(numbers), 90_000)
        self.assertEqual(numbers[-1], 100_000)

    def test_a_program_that_succeeds_leaves_nothing(self):
        done = self.keep([PYTHON, "-c", "import torch; torch.ones(10)"])
        self.assertEqual(done.returncode, 0)
        self.assert_nothing_left()
        self.assertEqual(
            split_stderr(done.stderr), (b"", ["tidemark: nothing happened that --dump names: what was kept has been deleted\n"])
        )

    @real_pytorch
    def test_a_program_that_fails(self):
        done = self.keep([PYTHON, "-c", FAILING])
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.decode().splitlines()
        error = lines.index("ValueError: no more data")
        self.assertLessEqual(len(lines) - error - 1, 10)
        self.assertIn("tidemark: The program failed; no out-of-memory error recorded", lines[error + 1 :])
        self.assertEqual(self.device()["peak_allocated_bytes"], 5 * 4000)
        self.assertEqual(self.summary()["data_quality"], {"complete": True, "issues": []})
        self.assert_nothing_left("run.tide")
        self.assertEqual(self.output.stat().st_mode & 0o077, 0)

    def test_only_what_dump_names(self):
        done = self.keep([PYTHON, "-c", FAILING], "--dump", "on-oom,on-signal")
        self.assertEqual(done.returncode, 1)
        self.assert_nothing_left()

    def test_signal(self):
        """Also one that the program sends to its parent. It gets none itself, which would end it."""
        command = self.record_command([PYTHON, "-c", WAITING], "--keep", "60s", "--dump", "on-signal")
        process = self.kill_at_end(start(command, stdin=subprocess.PIPE))
        read_until(process.stdout, b"ready\n")
        os.kill(process.pid, signal.SIGUSR1)
        said = read_until(process.stderr, b"run.tide: the last ")
        process.stdin.write(b"7\n")
        process.stdin.flush()
        read_until(process.stdout, b"made\n")
        read_until(process.stderr, b"run.2.tide: the last ", said)
        process.stdin.close()
        self.assertEqual(process.wait(), 0)
        process.stderr.read()
        self.assertEqual(self.live_bytes(), 4000)
        self.assertEqual(self.live_bytes("run.2.tide"), 4028)
        self.assertEqual({issue["id"] for issue in self.summary()["data_quality"]["issues"]}, {"stopped_early"})
        self.assert_nothing_left("run.2.tide", "run.tide")

    def test_the_kernel_kills_for_memory(self):
        group = memory_group(HOST_LIMIT)
        if group is None:
            self.skipTest("no control group with a limit can be made here")
        try:
            # The recorder outside would see another group's limit.
            command = self.record_command([PYTHON, "-c", HUNGRY], "--keep", "60s", "--dump", "on-oom")
            done = run(["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *command])
        finally:
            group.rmdir()
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr.decode())
        _, lines = split_stderr(done.stderr)
        self.assertLessEqual(len(lines), 10)
        self.assertRegex(lines[0], r"Out of memory on the host: main process \S*python.* killed by the kernel's OOM killer")
        self.assertIn(f"control group {group}: limit 700.0 MiB", lines[1])
        (tensors,) = [n for n, line in enumerate(lines) if " in recorded CPU tensors at the end, most of it by" in line]
        self.assertIn("<module> (<string>:5)", lines[tensors + 1])
        self.assertIn("run.tide: the last ", lines[-1])
        (killed,) = self.summary()["killed"]
        self.assertIn(killed["evidence"], ("kernel_log", "exit_signal"))
        self.assertEqual(killed["cgroup_limit_bytes"], HOST_LIMIT)
        self.assertEqual(self.live_bytes() % (16 << 20), 0)
        self.assertGreater(self.live_bytes(), HOST_LIMIT // 4)

    def test_a_full_disk_leaves_what_was_kept(self):
        """A file limit that allows the segments, but not the dump of all."""
        grown = program("growing.py", "--every", EVERY, "--until", 300_000)
        failing = ["sh", "-c", 'ulimit -S -f unlimited; "$@"; exit 3', "sh", *grown]
        command = self.record_command(failing, "--keep", "1MiB")
        done = run(["/bin/sh", "-c", f'ulimit -S -f {(512 << 10) // 512}; exec "$@"', "sh", *command])
        self.assertEqual(done.returncode, 3)
        _, lines = split_stderr(done.stderr)
        self.assertRegex(lines[-1], r"no dump: .*File too large.*; what was kept is in .*run\.tide\.kept$")
        self.assertGreater(len(list((self.folder / "run.tide.kept").iterdir())), 2)

    def test_what_cannot_go_together(self):
        for options, message in (
            (["--dump", "on-oom"], "--dump: needs --keep"),
            (["--keep", "10min", "--max-size", "1GB"], "--keep and --max-size: cannot be given both"),
            (["--keep", "10"], "invalid value '10' (expected a time such as 30s"),
            (["--keep", "1s"], "'1s' is not between 5s and 366d"),
            (["--keep", "1min,2min"], "has two times"),
            (["--keep", "1min", "--dump", "on-exit"], "invalid value 'on-exit' (expected on-oom, on-signal and on-exit-code"),
        ):
            with self.subTest(options):
                done = self.record([PYTHON, "-c", "pass"], *options)
                self.assertEqual(done.returncode, 2)
                self.assertIn(message, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
