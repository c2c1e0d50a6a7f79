"""Signals pass through tidemark to the program, and the program's end by a signal passes back."""

import os
import pty
import signal
import subprocess
import unittest
from pathlib import Path

from driver import PYTHON, Case, children, environment, program, read_until, real_pytorch, run, split_stderr, start, wait_for


class Signals(Case):
    def test_ended_by_a_signal(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                die = ["/bin/sh", "-c", f"kill -{int(number)} $$; sleep 60"]
                self.assertEqual(run(die).returncode, -number)
                self.assertEqual(self.record(die).returncode, -number)

    @real_pytorch
    def test_killed_while_tensors_are_alive(self):
        dying = "import os, signal, torch; kept = torch.ones(1000); os.kill(os.getpid(), signal.SIGSEGV)"
        recorded = self.record([PYTHON, "-c", dying])
        self.assertEqual(recorded.returncode, -signal.SIGSEGV)
        self.assertEqual(split_stderr(recorded.stderr)[0], b"")
        self.assertEqual(self.device()["end_allocated_bytes"], 4000)
        self.assertTrue(self.summary()["data_quality"]["complete"])

    def test_handled_by_the_program(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                ends = []
                for command in (
                    program("signals.py", "--wait"),
                    self.record_command(program("signals.py", "--wait"), "--force"),
                ):
                    process = self.kill_at_end(start(command))
                    stdout = read_until(process.stdout, b"ready\n")
                    process.send_signal(number)
                    stdout += process.stdout.read()
                    stderr, _ = split_stderr(process.stderr.read())
                    ends.append((process.wait(), stdout, stderr))
                self.assertEqual(ends[0], (3, f"ready\nended by {number.name}\n".encode(), b""))
                self.assertEqual(ends[1], ends[0])
                self.assertIn(800, self.sizes(), "what the handler allocated")

    def test_not_handled_by_the_program(self):
        # Python turns SIGINT into KeyboardInterrupt, prints it and dies of SIGINT.
        for number, code in ((signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGUSR1, -10)):
            with self.subTest(number.name):
                waiting = "import threading, torch; torch.ones(5); print('ready', flush=True); threading.Event().wait(60)"
                process = self.kill_at_end(start(self.record_command([PYTHON, "-c", waiting], "--force")))
                read_until(process.stdout, b"ready\n")
                process.send_signal(number)
                self.assertEqual(process.wait(), code)
                self.assertEqual(self.sizes(), [20])

    def test_ctrl_c_at_a_terminal(self):
        """The terminal sends SIGINT to the whole foreground group: the program must not get another from tidemark."""
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        output = os.fdopen(os.dup(controller), "rb", buffering=0)
        self.addCleanup(output.close)
        command = ["setsid", "--fork", "--ctty", "--wait", *self.record_command(program("interrupts.py"))]
        process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(terminal)
        seen = read_until(output, b"ready\r\n")
        # tidemark stands still until the program has handled the terminal's signal: another one would not be merged with it.
        (tidemark,) = children(process.pid)
        os.kill(tidemark, signal.SIGSTOP)
        os.write(controller, b"\x03")
        seen = read_until(output, b"interrupted\r\n", seen)
        # It passes signals on in order of their numbers: a SIGINT of its own would come before this SIGTERM.
        os.kill(tidemark, signal.SIGTERM)
        os.kill(tidemark, signal.SIGCONT)
        seen = read_until(output, b"to see the peak memory: tidemark summary", seen)
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"interrupts: 1\r\n", seen)
        self.assertEqual(seen.count(b"interrupted\r\n"), 1)

    def test_signal_dispositions_are_inherited(self):
        show = ["/bin/sh", "-c", "grep Sig[BI] /proc/self/status; ulimit -c"]
        ignored = ["/bin/sh", "-c", 'trap "" XFSZ PIPE USR2; exec "$@"', "sh"]
        for before in ([], ignored):
            plain, recorded = run([*before, *show]), run([*before, *self.record_command(show)])
            self.assertEqual(recorded.stdout, plain.stdout)
            self.assertEqual(plain.stdout.count(b"Sig"), 2)

    def test_recorder_stopped_for_a_while(self):
        go = self.folder / "go"
        script = (
            "import os, sys, time, torch\nprint('ready', flush=True)\n"
            "while not os.path.exists(sys.argv[1]): time.sleep(0.002)\n"
            "for n in range(1, 1001): torch.empty(n, dtype=torch.uint8)\nprint('end', flush=True)"
        )
        tidemark = self.kill_at_end(start(self.record_command([PYTHON, "-c", script, go])))
        read_until(tidemark.stdout, b"ready\n")
        tidemark.send_signal(signal.SIGSTOP)
        state = Path(f"/proc/{tidemark.pid}/stat")
        wait_for(lambda: state.read_text().rsplit(")", 1)[1].split()[0] == "T", "the recorder to stop")
        go.touch()
        read_until(tidemark.stdout, b"end\n")  # the program does not wait for the recorder
        tidemark.send_signal(signal.SIGCONT)
        self.assertEqual(tidemark.wait(), 0)
        self.assertEqual(self.sizes(), list(range(1, 1001)))


if __name__ == "__main__":
    unittest.main()
