"""SIGKILL at any instant, of the program or of the recorder: no earlier event is lost, and the other process continues."""

import os
import random
import signal
import sys
import time
import unittest

from driver import PYTHON, Case, children, environment, program, read_until, real_pytorch, split_stderr, start, wait_for

EVERY = 10  # allocations between two lines of growing.py
KILLS = int(os.environ.get("TIDEMARK_TEST_KILLS", 12))  # of workers; a sixth as many of the recorder
SEED = int(os.environ.get("TIDEMARK_TEST_SEED", random.SystemRandom().randrange(10**6)))


def spin(seconds):
    """Waits for less time than the system's clock can sleep."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def count_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


class Killed(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        print(f"{self.id()}: TIDEMARK_TEST_SEED={SEED}", file=sys.stderr)

    def check_recorded(self, name, lines):
        """Allocations printed by growing.py are in the recording, in order, and no others."""
        said = int(lines.splitlines()[-1]) if lines else 0
        if name not in self.recordings():
            self.assertEqual(said, 0, f"{name} is missing")
            return
        events = self.events(name)
        sizes = [event["size"] for event in events if event["kind"] == "allocate"]
        self.assertLessEqual(said, len(sizes))
        self.assertLessEqual(len(sizes), said + EVERY)
        self.assertEqual(sizes, [4096 + n for n in range(1, len(sizes) + 1)])
        freed = [event["size"] for event in events if event["kind"] == "free"]
        self.assertEqual(freed, [4096 + n for n in range(1, len(freed) + 1)])
        self.assertLessEqual(len(sizes) - len(freed), 9)
        self.assertGreaterEqual(len(sizes) - len(freed), min(len(sizes), 8))
        self.assertEqual(self.summary(name)["data_quality"], {"complete": True, "issues": []})

    def test_program_killed(self):
        for wanted in (1, self.random.randrange(500), self.random.randrange(3_000)):
            with self.subTest(lines=wanted):
                tidemark = self.kill_at_end(
                    start(self.record_command(program("growing.py", "--every", EVERY), "--force", "--quiet"))
                )
                lines = b""
                while lines.count(b"\n") < wanted:
                    lines += read_until(tidemark.stdout, b"\n")
                (grower,) = wait_for(lambda pid=tidemark.pid: children(pid), "the program")
                spin(self.random.uniform(0, 0.002))
                os.kill(grower, signal.SIGKILL)
                lines += tidemark.stdout.read()
                self.assertEqual(tidemark.stderr.read(), b"")
                self.assertEqual(tidemark.wait(), -signal.SIGKILL, "tidemark ends as the program did")
                self.check_recorded("run.tide", lines)

    @real_pytorch
    def test_forked_workers_killed(self):
        workers = KILLS
        tidemark = self.kill_at_end(
            start(
                self.record_command(
                    program("growing.py", "--every", EVERY, "--workers", workers, "--folder", self.folder), "--quiet"
                )
            )
        )
        seen = b""
        for worker in range(workers):
            seen = read_until(tidemark.stdout, b"\n", seen)
            line, seen = seen.split(b"\n", 1)
            path = self.folder / line.decode()
            # From "perhaps before its first event" on, and more often early than late.
            wanted = int(10 ** self.random.uniform(0, 3)) if worker else 0
            wait_for(lambda path=path, wanted=wanted: count_lines(path) >= wanted, "the worker's progress")
            spin(self.random.uniform(0, 0.002))
            os.kill(int(line), signal.SIGKILL)
        self.assertEqual((tidemark.stderr.read(), tidemark.wait()), (b"", 0))
        self.assertEqual(self.sizes(), [1000] * workers, "the parent's own")
        logs = [path for path in self.folder.iterdir() if path.suffix != ".tide"]
        self.assertGreaterEqual(len(logs), workers - 1)
        for path in logs:
            self.check_recorded(f"run.pid{path.name}.tide", path.read_bytes())

    def test_everything_but_the_recorder_killed(self):
        logs = [self.folder / "first", self.folder / "second"]
        script = '"$@" > "$0/first" & "$@" > "$0/second" & echo "$!"; wait'
        command = ["/bin/sh", "-c", script, str(self.folder), *program("growing.py", "--every", EVERY)]
        tidemark = self.kill_at_end(start(self.record_command(command, "--quiet")))
        wait_for(lambda: all(count_lines(log) > 100 for log in logs), "both programs")
        (shell,) = children(tidemark.pid)
        growers = dict(zip(logs, children(shell)))
        self.assertEqual(len(growers), 2)
        killed = [shell, *growers.values()]
        self.random.shuffle(killed)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(tidemark.stderr.read(), b"")
        self.assertEqual(tidemark.wait(), -signal.SIGKILL)
        names = {self.summary(name)["process"]["pid"]: name for name in self.recordings()}
        self.assertEqual(set(names), set(growers.values()))
        for log, pid in growers.items():
            self.check_recorded(names[pid], log.read_bytes())

    def start_recorder(self, command, *options):
        """A recorder that will be killed: its remaining files are in the test's folder."""
        return start(self.record_command(command, *options), env=environment(TIDEMARK_RUNTIME_DIR=str(self.folder)))

    def test_recorder_killed(self):
        # Far more events than the rings hold, so that the program notices.
        until = 1_500_000
        command = [*program("growing.py", "--every", 50_000, "--until", until)]
        shell = ["/bin/sh", "-c", '"$@"; echo "exit code $?"', "sh", *command]
        tidemark = self.kill_at_end(self.start_recorder(shell))
        wait_for(lambda: self.output.exists() and self.output.stat().st_size > 200_000, "the recording")
        tidemark.kill()
        stdout = tidemark.stdout.read()  # ends with the shell, not with tidemark
        expected = [*(str(n) for n in range(50_000, until + 1, 50_000)), "exit code 0"]
        self.assertEqual(stdout.decode().splitlines(), expected)
        rest, ours = split_stderr(tidemark.stderr.read())
        self.assertEqual(rest, b"")
        self.assertEqual(len(ours), 1, ours)
        self.assertIn("recording stopped: the recorder has exited; the program continues", ours[0])
        sizes = self.sizes()
        self.assertGreater(len(sizes), 100)
        self.assertLess(len(sizes), until)
        self.assertEqual(sizes, [4096 + n for n in range(1, len(sizes) + 1)])
        self.assertIn("recorder_killed", self.issue_ids())
        self.assertFalse(self.summary()["data_quality"]["complete"])

        # As if the last write had been cut short, which may also have happened: exactly the cut frame is lost. It may be one without events (a sample
        # of the host, for example).
        whole = self.frames("run.tide")
        if "torn_tail" not in self.issue_ids():
            whole.pop()
        torn = self.folder / "torn.tide"
        torn.write_bytes(self.output.read_bytes()[:-1])
        self.assertIn("torn_tail", self.issue_ids("torn.tide"))
        self.assertEqual(self.frames("torn.tide"), whole)
        left = self.sizes("torn.tide")
        self.assertLess(0, len(left))
        self.assertEqual(left, sizes[: len(left)])

    def test_recorder_killed_at_any_instant(self):
        every, until = 1000, 150_000  # fits into the ring: nothing is dropped, however late the recorder reads
        for kill in range(max(1, KILLS // 6)):
            with self.subTest(kill=kill):
                self.output.unlink(missing_ok=True)
                command = program("growing.py", "--every", every, "--until", until)
                tidemark = self.kill_at_end(self.start_recorder(command, "--quiet"))
                stdout = read_until(tidemark.stdout, b"\n")
                time.sleep(self.random.uniform(0, 0.3))
                tidemark.kill()
                stdout += tidemark.stdout.read()
                self.assertEqual(stdout.decode().split(), [str(n) for n in range(every, until + 1, every)])
                self.assertLessEqual(len(split_stderr(tidemark.stderr.read())[1]), 1)
                ended_before = tidemark.wait() == 0
                if not self.output.exists() or not self.output.stat().st_size:
                    self.assertFalse(ended_before)
                    continue  # it was killed before it accepted the program
                sizes = self.sizes()
                self.assertEqual(sizes, [4096 + n for n in range(1, len(sizes) + 1)])
                if not ended_before and "recorder_killed" in self.issue_ids():
                    continue
                # It had ended, or the recording was complete when it was killed: only its socket was not yet removed.
                self.assertEqual(len(sizes), until)
                self.assertEqual(self.summary()["data_quality"], {"complete": True, "issues": []})

    def frames(self, name):
        """The frames of a file, as `dump --frames` prints them."""
        lines = self.read("dump", "--frames", "--format", "json", self.folder / name).splitlines()
        return [line for line in lines if b'"frame"' in line]

    def test_recorder_gone_before_the_first_event(self):
        waiting = "import sys, torch; print('ready', flush=True); sys.stdin.readline(); print(torch.ones(9).sum().item())"
        shell = f'mkfifo "$0/go"; "$1" -c "{waiting}" < "$0/go"; echo "exit code $?"'
        command = ["/bin/sh", "-c", shell, str(self.folder), PYTHON]
        tidemark = self.kill_at_end(self.start_recorder(command))
        go = os.open(wait_for(lambda: next(self.folder.glob("go"), None), "the shell"), os.O_WRONLY)
        stdout = read_until(tidemark.stdout, b"ready\n")
        tidemark.kill()
        tidemark.wait()
        os.write(go, b"\n")
        os.close(go)
        self.assertEqual(stdout + tidemark.stdout.read(), b"ready\n9.0\nexit code 0\n")
        rest, ours = split_stderr(tidemark.stderr.read())
        self.assertEqual((rest, len(ours)), (b"", 1), ours)
        self.assertIn("recording is off: the recorder cannot be reached; the program continues", ours[0])
        self.assertEqual(self.recordings(), [])


if __name__ == "__main__":
    unittest.main()
