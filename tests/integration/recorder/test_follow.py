"""A recording that is read while its program runs: --follow, to a pipe, to a terminal, by file and by process."""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest

from driver import PROGRAMS, TIDEMARK, Case, children, environment, program, read_until, real_pytorch, run, start, wait_for

INTERVAL = ("--interval", "200ms")


COMPAT = PROGRAMS.parents[1] / "compat"


class LaterFile(Case):
    def test_a_recording_that_goes_on_in_another_file(self):
        """This test acts as the recorder: the file of its process is another one from now on."""
        first, second = self.folder / "first.tide", self.folder / "second.tide"
        first.write_bytes((COMPAT / "v0.1.0.tide").read_bytes()[:-3])
        second.write_bytes((COMPAT / "v0.1.0-samples.tide").read_bytes())
        place = self.folder / "tidemark-abcdef"
        place.mkdir(mode=0o700)
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
            first.open() as being_written,
        ):
            fcntl.flock(being_written, fcntl.LOCK_EX)
            listener.bind(str(place / "live"))
            listener.listen()
            command = [TIDEMARK, "summary", "--follow", "--pid", "999999", *INTERVAL]
            followed = self.kill_at_end(start(command, env=environment(TIDEMARK_RUNTIME_DIR=str(self.folder))))
            connection, _ = listener.accept()
            with connection:
                connection.send(json.dumps({"recordings": [{"pid": 999999, "path": str(first)}]}).encode())
                output = read_until(followed.stdout, b"first.tide: in progress")
                connection.send(json.dumps({"recordings": [{"pid": 999999, "path": str(second)}]}).encode())
                being_written.close()
                output = read_until(followed.stdout, b"second.tide: ended", output)
        output, errors = output + followed.stdout.read(), followed.stderr.read()
        self.assertEqual((followed.wait(), errors), (0, b""))
        self.assertIn(self.read("summary", second), output)


class Follow(Case):
    def setUp(self):
        super().setUp()
        self.recorder = self.kill_at_end(start(self.record_command(program("growing.py", "--every", 10))))
        read_until(self.recorder.stdout, b"100\n")
        wait_for(self.output.exists, "the recording")
        (self.pid,) = children(self.recorder.pid)
        # Its lines must be read, or it waits; slowly, so that the recording stays small.
        self.reading = threading.Thread(target=self.read_lines)
        self.reading.start()

    def read_lines(self):
        while os.read(self.recorder.stdout.fileno(), 512):
            time.sleep(0.05)

    def follow(self, *arguments):
        return self.kill_at_end(start([TIDEMARK, *map(str, arguments), *INTERVAL]))

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        self.recorder.wait()
        self.reading.join()

    def blocks(self, output):
        """The texts in order, each below its title."""
        titles = [line for line in output.decode().splitlines() if line.startswith(f"{self.output}: ")]
        return titles, output.decode().rpartition(titles[-1])[2].strip()

    def test_until_it_ends(self):
        """Follows with and without blocks until the recording ends, and compares with the file's results."""
        text = self.follow("summary", "--follow", self.output)
        by_pid = self.follow("summary", "--follow", "--pid", self.pid, "--format", "json")
        timeline = self.follow("timeline", "--follow", "--pid", self.pid, "--format", "csv", "--points", "50")
        plot = self.follow("timeline", "--follow", self.output, "-o", self.folder / "memory.svg")
        first = read_until(text.stdout, b"in progress")
        documents = read_until(by_pid.stdout, b"\n}\n")
        wait_for((self.folder / "memory.svg").exists, "the picture")
        points = read_until(timeline.stdout, b"\n")
        self.check_terminal()
        self.end()
        output, errors = text.communicate()
        self.assertEqual((text.returncode, errors), (0, b""))
        titles, last = self.blocks(first + output)
        self.assertGreaterEqual(len(titles), 2)
        self.assertIn(": in progress, ", titles[0])
        self.assertIn(": ended, ", titles[-1])
        self.assertIn("Data quality: still recording", (first + output).decode())
        self.assertEqual(last, self.read("summary", self.output).decode().strip())

        output, errors = by_pid.communicate()
        self.assertEqual((by_pid.returncode, errors), (0, b""))
        self.assertEqual(json.loads((documents + output).decode().rpartition("\n\n")[2]), self.summary())
        output = points + timeline.communicate()[0]
        whole = self.read("timeline", self.output, "--format", "csv", "--points", "50")
        self.assertTrue(output.endswith(whole), output[-500:])
        self.assertEqual(plot.wait(), 0)
        self.read("timeline", self.output, "-o", self.folder / "whole.svg")
        pictures = [(self.folder / name).read_bytes() for name in ("memory.svg", "whole.svg")]
        self.assertEqual(*[re.sub(rb"(clip|surface)-?[0-9]+", rb"\1", picture) for picture in pictures])

        done = run([TIDEMARK, "summary", "--follow", "--pid", str(self.pid)])
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"process {self.pid} is not being recorded".encode(), done.stderr)
        done = run([TIDEMARK, "summary", "--follow", str(self.output)])
        self.assertEqual((done.returncode, self.blocks(done.stdout)[1]), (0, last), "of what has ended, the end at once")

    def check_terminal(self):
        """24 rows of 80 columns: everything in place, and complete after Ctrl-C."""
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = [TIDEMARK, "summary", "--follow", str(self.output), *INTERVAL]
        env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
        shown = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=env)
        self.addCleanup(shown.stderr.close)
        self.addCleanup(shown.kill)
        os.close(terminal)

        def read_screen(wanted, count, output=b""):
            while output.count(wanted) < count:
                output += os.read(controller, 65536)
            return output

        output = read_screen(b"\x1b[J", 2)
        screens = output.split(b"\x1b[H")
        self.assertEqual(screens[0], b"\x1b[?7l", "nothing before the first, and no line wraps")
        for screen in screens[1:-1]:
            self.assertLessEqual(screen.count(b"\n"), 23)
            self.assertIn(b": in progress, ", screen.splitlines()[0])
        shown.send_signal(signal.SIGINT)
        end = output
        try:
            while chunk := os.read(controller, 65536):
                end += chunk
        except OSError:
            pass  # the other end is closed
        self.assertEqual((shown.wait(), shown.stderr.read()), (0, b""))
        last = end.rpartition(b"\x1b[?7h\x1b[H\x1b[J")[2].decode()
        self.assertIn("Data quality", last)
        self.assertNotIn("\x1b", last)

    @real_pytorch
    def test_a_recording_that_is_still_written(self):
        """Its recorder holds the file's lock; a copy has no recorder, and events are missing."""
        self.assertIn(b"Data quality: still recording", self.read("summary", self.output))
        self.assertIn(b"Still recording: later events are not included.", self.read("leaks", self.output))
        copy = self.folder / "copy.tide"
        copy.write_bytes(self.output.read_bytes())
        self.assertIn(b"Data quality: events are missing", self.read("summary", copy))
        self.end()

    def test_a_recorder_that_is_killed(self):
        followed = self.follow("summary", "--follow", self.output)
        read_until(followed.stdout, b"in progress")
        os.kill(self.recorder.pid, signal.SIGKILL)
        output, errors = followed.communicate()
        os.kill(self.pid, signal.SIGKILL)
        self.reading.join()
        self.assertEqual((followed.returncode, errors), (0, b""))
        titles, _ = self.blocks(output)
        self.assertIn("the recorder is gone", titles[-1])


if __name__ == "__main__":
    unittest.main()
