"""tidemark interactive and top in a real terminal, with a driver whose devices are scripted.

terminal_test.py TIDEMARK FAKES_NVML_FOLDER PYTHON       PYTHON: one with PyTorch, for the recorded program; "" for none
"""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import urllib.request
from pathlib import Path

from tmux import DEADLINE, Terminal, until

TIDEMARK = NVML = PYTHON = ""
WATCHED = Path(__file__).resolve().parents[1] / "recorder" / "watched.py"
MIB = 1 << 20
DEVICES = {
    "driver": "580.1",
    "cuda": 13000,
    "devices": [
        {
            "name": "Fake H100",
            "uuid": "GPU-1111",
            "bus": 0x65,
            "memory": {"total": 81559 * MIB, "reserved": 551 * MIB, "used": 2048 * MIB},
            "utilization": 37,
            "temperature": 41,
            "power": 71500,
            "processes": [{"pid": "parent", "bytes": 500 * MIB}],
        },
        {"name": "Fake A100", "uuid": "GPU-2222", "bus": 0x66, "memory": {"total": 40960 * MIB, "used": 1024 * MIB}},
    ],
}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tidemark-terminal-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.script = self.folder / "nvml.json"
        self.script.write_text(json.dumps(DEVICES))

    def environment(self, **changes):
        every = {"LD_LIBRARY_PATH": NVML, "FAKES_NVML": str(self.script), "LC_ALL": "C.UTF-8", "TERM": "screen-256color"}
        return {name: value for name, value in {**every, **changes}.items() if value is not None}

    def terminal(self, width, height, **changes):
        terminal = Terminal(width, height, self.environment(**changes))
        self.addCleanup(terminal.close)
        return terminal

    def start(self, terminal, command="interactive"):
        terminal.type(f"cd {self.folder}; stty -g > before; clear; {TIDEMARK} {command}\n")

    def check_ended(self, terminal, code):
        terminal.wait_for("ready%")
        terminal.type("echo code=$?\n")
        terminal.wait_for(f"code={code}")

    def check_restored(self, terminal, code):
        self.check_ended(terminal, code)
        self.assertEqual(terminal.says("alternate_on"), "0")
        self.assertEqual(terminal.says("cursor_flag"), "1")
        terminal.type("stty -g > after; echo written\n")
        terminal.wait_for("\nwritten")
        self.assertEqual((self.folder / "after").read_text(), (self.folder / "before").read_text())


class FullScreenTest(Case):
    def test_views_keys_and_quit_at_80x24(self):
        terminal = self.terminal(80, 24)
        self.start(terminal)
        screen = terminal.wait_for("GPU 0: Fake H100", "2.0 GiB of   79.1 GiB", "37%", "41 °C", "71.5 W")
        self.assertIn("GPU 1: Fake A100", screen)
        self.assertIn("1 Devices", screen.splitlines()[0])
        terminal.type("2")
        terminal.wait_for("PID", "500.0 MiB", "GPU 0")
        terminal.press("Tab")
        terminal.wait_for("now 2.0 GiB", "▁", "-60 s")
        terminal.press("BTab", "BTab")
        terminal.wait_for("DEVICE", "TEMP")
        terminal.press("Down")
        terminal.wait_for("─ GPU 1: Fake A100")
        terminal.type("4")
        terminal.wait_for("no process is being recorded")
        terminal.type("5")
        terminal.wait_for("found")
        terminal.type("6")
        terminal.wait_for("RSS", "killed by the OOM killer")
        terminal.type("h")
        terminal.wait_for("Ctrl-L")
        terminal.press("Escape")
        terminal.wait_for("RSS", gone="Ctrl-L")
        terminal.type("p")
        terminal.wait_for("PAUSED")
        terminal.type("p")
        terminal.wait_for("0:00:", gone="PAUSED")
        terminal.type("q")
        self.check_restored(terminal, 0)

    def test_top_and_the_report_at_120x40(self):
        terminal = self.terminal(120, 40)
        self.start(terminal, "top --interval 0.1")
        terminal.wait_for("PROCESS", "500.0 MiB")
        terminal.type("m")
        terminal.wait_for("Marked this moment: 1")
        terminal.type("r")
        terminal.wait_for("has no flight recorder (tidemark run --keep 10min)")
        terminal.type("w")
        terminal.wait_for("Save the report as:")
        terminal.type("no/such/folder/x")
        terminal.press("Enter")
        terminal.wait_for("no/such/folder/x:")
        terminal.type("wreport.jsonx")
        terminal.press("BSpace", "Enter")
        terminal.wait_for("Saved: report.json")
        terminal.type("3")
        terminal.wait_for("┊")
        terminal.type("q")
        self.check_restored(terminal, 0)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(report["devices"]["0"]["current_memory"]["allocated"], 2048 * MIB)
        self.assertEqual(report["devices"]["1"]["current_memory"]["total"], 40960 * MIB)
        self.assertIn("risk_level", report["devices"]["0"]["risk_assessment"])
        self.assertEqual([mark["name"] for mark in report["marks"]], ["1"])

    def test_too_small_and_resized(self):
        terminal = self.terminal(40, 10)
        self.start(terminal)
        terminal.wait_for("40 columns", "72 and 18", gone="Devices")
        terminal.resize(100, 30)
        screen = terminal.wait_for("GPU 0: Fake H100", "q quit", gone="72 and 18")
        self.assertEqual(len(screen.splitlines()), 30)
        terminal.resize(71, 30)
        terminal.wait_for("71 columns", gone="GPU 0")
        terminal.resize(100, 17)
        terminal.wait_for("100 columns and 17 rows")
        terminal.resize(12, 3)  # nothing fits completely: the visible part is shown, and keys work
        terminal.wait_for("This", gone="q quit")
        terminal.resize(200, 60)
        screen = terminal.wait_for("GPU 0: Fake H100", "q quit", gone="columns")
        self.assertEqual(len(screen.splitlines()), 60)
        terminal.type("q")
        self.check_restored(terminal, 0)

    def test_signals_give_the_terminal_back(self):
        terminal = self.terminal(80, 24)
        self.start(terminal)
        terminal.wait_for("GPU 0")
        terminal.press("C-c")
        self.check_restored(terminal, 130)
        self.start(terminal)
        terminal.wait_for("GPU 0", "q quit")
        os.kill(self.child_of(int(terminal.says("pane_pid"))), signal.SIGTERM)
        self.check_restored(terminal, 143)

    def test_stopped_and_continued(self):
        terminal = self.terminal(80, 24)
        self.start(terminal)
        terminal.wait_for("GPU 0", "q quit")
        terminal.press("C-z")
        terminal.wait_for("Stopped", "ready%")
        terminal.type("clear; fg\n")
        terminal.wait_for("GPU 0: Fake H100", "q quit")
        terminal.type("q")
        terminal.wait_for("ready%")

    def test_ends_with_its_terminal(self):
        terminal = self.terminal(80, 24)
        self.start(terminal)
        terminal.wait_for("GPU 0", "q quit")
        pid = self.child_of(int(terminal.says("pane_pid")))
        terminal.close()
        until(Path(f"/proc/{pid}").exists, lambda there: not there, f"the end of process {pid}")

    def test_keys_work_while_a_driver_does_not_answer(self):
        script = self.script.read_text()
        self.script.unlink()
        os.mkfifo(self.script)  # the driver waits for writes to it
        terminal = self.terminal(80, 24)
        self.start(terminal)
        terminal.wait_for("Waiting for the GPU driver")
        terminal.type("6")
        terminal.wait_for("killed by the OOM killer")
        terminal.type("1")
        terminal.wait_for("Waiting for the GPU driver")
        self.script.write_text(script)
        terminal.wait_for("GPU 0: Fake H100")
        terminal.type("q")
        self.check_restored(terminal, 0)

    def test_colours_are_left_out_where_they_are_not_wanted(self):
        terminal = self.terminal(80, 24)
        self.start(terminal)
        terminal.wait_for("GPU 0", "█")
        self.assertIn("\x1b[32m", terminal.screen(styles=True))
        terminal.type("q")
        self.check_ended(terminal, 0)
        terminal.type("export NO_COLOR=1\n")
        self.start(terminal)
        terminal.wait_for("GPU 0", "█")
        self.assertNotRegex(terminal.screen(styles=True), "\x1b\\[3[0-7]")

    def test_ascii_where_the_locale_has_no_more(self):
        terminal = self.terminal(80, 24, LC_ALL="C")
        self.start(terminal)
        screen = terminal.wait_for("GPU 0", "#", "41")
        self.assertTrue(screen.isascii(), screen)

    def test_a_size_that_no_screen_has(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        size = struct.pack("HHHH", 65535, 65535, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        program = subprocess.Popen([TIDEMARK, "interactive"], stdin=theirs, stdout=theirs, env=self.environment())
        os.close(theirs)
        seen = until(lambda: os.read(ours, 65536), lambda text: b"Fake H100" in text, "the first view")
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        fcntl.ioctl(ours, termios.TIOCSWINSZ, size)
        os.write(ours, b"q")
        try:
            while os.read(ours, 65536):
                pass
        except OSError:  # it has ended
            pass
        self.assertEqual(program.wait(), 0, seen)

    def test_a_terminal_that_nobody_knows(self):
        terminal = self.terminal(80, 24, TERM="no-such-terminal", TERMINFO="/nonexistent", TERMINFO_DIRS="/nonexistent")
        self.start(terminal)
        terminal.wait_for("GPU 0: Fake H100")
        terminal.type("2")
        terminal.wait_for("500.0 MiB")
        terminal.press("Up")
        terminal.type("q")
        self.check_ended(terminal, 0)

    @staticmethod
    def child_of(pid):
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


class RecordedTest(Case):
    """A recorded training: each view shows the program's own values."""

    @classmethod
    def setUpClass(cls):
        if not PYTHON:
            raise unittest.SkipTest("TIDEMARK_TEST_PYTHONS is empty: there is no program to record")
        cls.runtime = tempfile.TemporaryDirectory(prefix="tidemark-terminal-run-")
        cls.addClassCleanup(cls.runtime.cleanup)
        # Other recorders on this machine are not found from there.
        cls.places = {"TIDEMARK_RUNTIME_DIR": cls.runtime.name}
        command = [TIDEMARK, "run", "-q", "-o", f"{cls.runtime.name}/run.tide", "--", PYTHON, str(WATCHED)]
        cls.program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **cls.places}
        )
        cls.addClassCleanup(cls.stop)
        cls.said = json.loads(cls.program.stdout.readline())

    @classmethod
    def stop(cls):
        cls.program.communicate()

    @staticmethod
    def sizes(size):
        return f"{size / MIB:.1f} MiB" if size >= MIB else f"{size / 1024:.1f} KiB"

    def rows(self, screen):
        """{name: the row's text} below the headings of the table of holders."""
        lines = screen.splitlines()
        first = next(n for n, line in enumerate(lines) if line.lstrip().startswith("BYTES"))
        rows = [line.strip() for line in lines[first + 1 :] if " %" in line]
        return {re.split(r" {2,}", row)[-1]: row for row in rows}

    def rows_between_steps(self, terminal, categories):
        """The rows of categories, once they have the sizes printed by the program: within a step there are more gradients."""

        def said(rows):
            return all(rows[name].startswith(self.sizes(self.said[name])) for name in categories)

        return until(lambda: self.rows(terminal.wait_for("CATEGORY", *categories)), said, f"the sizes of {categories}")

    def check_views(self, width, height):
        terminal = self.terminal(width, height, **self.places)
        self.start(terminal)
        terminal.wait_for("GPU 0: Fake H100")
        terminal.type("4")
        terminal.wait_for("watched.py (PID ", "cpu: ", "STACK", f"watched.py:{self.said['leaking_line']}")
        terminal.type("s")
        rows = self.rows(terminal.wait_for("MODULE", "embedding"))
        for name in self.said["modules"]:
            self.assertIn(name, rows)
        terminal.type("s")
        rows = self.rows_between_steps(terminal, ("parameter", "gradient", "optimizer state"))
        self.assertRegex(rows["activation"], r"\+[\d.]+ [KM]iB")  # it grows
        terminal.type("5")
        # By hand: 4 tokens of 256 values and of 1024, 4 bytes each.
        terminal.wait_for("Leak: ", "20.0 KiB per step")
        terminal.type("2")
        terminal.wait_for("watched.py", "recorded")
        terminal.type("q")
        self.check_restored(terminal, 0)

    def test_at_80x24(self):
        self.check_views(80, 24)

    def test_at_120x40(self):
        self.check_views(120, 40)

    def test_at_200x60(self):
        self.check_views(200, 60)

    def test_resized_while_it_is_shown(self):
        terminal = self.terminal(80, 24, **self.places)
        self.start(terminal)
        terminal.wait_for("GPU 0: Fake H100")
        terminal.type("4ss")
        terminal.wait_for("CATEGORY", "optimizer state")
        terminal.resize(60, 24)
        terminal.wait_for("60 columns", gone="CATEGORY")
        terminal.resize(200, 60)
        terminal.wait_for("CATEGORY", "optimizer state", gone="60 columns")
        terminal.type("q")
        self.check_restored(terminal, 0)

    def test_the_prompt_has_them_at_once(self):
        def answer():
            done = subprocess.run(
                [TIDEMARK, "interactive"], input="holders category\nholders module\n", capture_output=True, text=True,
                env={**os.environ, **self.environment(**self.places)}, timeout=DEADLINE, check=False,
            )  # fmt: skip
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for name in ("parameter", "embedding"):
                self.assertIn(name, done.stdout)
            return done.stdout

        # Each answer is of one moment: within a step there are more gradients than in the program's values, or fewer.
        rows = [
            re.compile(rf"(?m)^ *{re.escape(self.sizes(self.said[name]))} .* {name}$")
            for name in ("parameter", "gradient", "optimizer state")
        ]
        until(answer, lambda text: all(row.search(text) for row in rows), "the sizes that the program has said")

    def test_metrics_and_history_meanwhile(self):
        terminal = self.terminal(80, 24, **self.places)
        self.start(terminal, "interactive --listen 127.0.0.1:0 --history h.db --interval 0.1")
        screen = terminal.wait_for("metrics at http://", "GPU 0")
        url = re.search(r"metrics at (\S+)", screen)[1]
        wanted = f'tidemark_category="parameter"}} {self.said["parameter"]}\n'
        until(lambda: urllib.request.urlopen(url).read().decode(), lambda page: wanted in page, wanted)
        terminal.type("q")
        self.check_restored(terminal, 0)
        history = subprocess.run(
            [TIDEMARK, "history", "h.db", "--format", "json"], cwd=self.folder, capture_output=True, text=True
        )
        devices = {device["device"]: device for device in json.loads(history.stdout)["devices"]}
        self.assertEqual(devices["1"]["peak_bytes"], 1024 * MIB)


class PromptTest(Case):
    def run_prompt(self, typed, *arguments, **changes):
        return subprocess.run(
            [TIDEMARK, "interactive", *arguments], input=typed, capture_output=True, text=True, cwd=self.folder,
            env={**os.environ, **self.environment(**changes)}, timeout=DEADLINE, check=False,
        )  # fmt: skip

    def test_commands(self):
        done = self.run_prompt("devices\nprocesses memory\nfindings\nhost\nmark half\nsave now.json\nquit\nnever read\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("GPU 0: Fake H100", "37%", "500.0 MiB", "killed by the OOM killer", "Marked this moment: half", "Saved"):
            self.assertIn(text, done.stdout)
        report = json.loads((self.folder / "now.json").read_text())
        self.assertEqual(report["devices"]["0"]["current_memory"]["allocated"], 2048 * MIB)
        self.assertEqual(report["marks"][0]["name"], "half")

    def test_end_of_input_without_a_newline(self):
        done = self.run_prompt("devices")
        self.assertEqual(done.returncode, 0)
        self.assertIn("GPU 1: Fake A100", done.stdout)

    def test_what_it_does_not_know(self):
        done = self.run_prompt("dance\nprocesses upwards\nsave\nhelp\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown command 'dance'", done.stderr)
        self.assertIn("'upwards' is not one of: device, memory, rss, pid, name", done.stderr)
        self.assertIn("save: the name of a file is missing", done.stderr)
        self.assertIn("processes", done.stdout)

    def test_only_some_devices(self):
        done = self.run_prompt("devices\n", "--devices", "1")
        self.assertNotIn("GPU 0", done.stdout)
        self.assertIn("GPU 1", done.stdout)

    def test_a_device_that_is_not_there(self):
        done = self.run_prompt("devices\n", "--devices", "7")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--devices 7: there is no such device here (there is 0, 1", done.stderr)
        terminal = self.terminal(80, 24)
        self.start(terminal, "interactive --devices 7")
        terminal.wait_for("there is no such device here")
        self.check_restored(terminal, 2)

    def test_a_dumb_terminal(self):
        terminal = self.terminal(80, 24, TERM="dumb")
        self.start(terminal)
        terminal.wait_for("lists the commands")
        terminal.type("devices\n")
        terminal.wait_for("GPU 0: Fake H100")
        terminal.type("quit\n")
        self.check_ended(terminal, 0)


if __name__ == "__main__":
    TIDEMARK, NVML, PYTHON = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
