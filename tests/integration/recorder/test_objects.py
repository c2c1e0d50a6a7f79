"""Programs that do not import tidemark report new storages and their holders, and are unchanged afterwards."""

import ast
import json
import socket
import subprocess
import time
import unittest

from driver import TIDEMARK, Case, children, environment, program, start, wait_for

MIB = 1 << 20


class Asked(Case):
    def setUp(self):
        super().setUp()
        self.environment = environment(TIDEMARK_RUNTIME_DIR=str(self.folder))
        command = self.record_command(program("asked.py"))
        self.recorder = self.kill_at_end(start(command, env=self.environment, stdin=subprocess.PIPE))
        self.addCleanup(self.recorder.stdin.close)
        self.tell("work")
        (self.pid,) = children(self.recorder.pid)
        (self.place,) = self.folder.glob("tidemark-*")

    def tell(self, line):
        self.recorder.stdin.write(line.encode() + b"\n")
        return ast.literal_eval(self.recorder.stdout.readline().decode())

    def connect(self):
        """Like a monitor: the recorder looks for requests while a reader is connected."""
        reader = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(reader.close)
        reader.connect(str(self.place / "live"))

    def ask(self, text, pid=None):
        """The program's answer, for which it has to allocate meanwhile."""
        question = self.place / f"objects.{pid or self.pid}.new"
        question.write_text(text)
        question.rename(question.with_suffix(".question"))
        answer = question.with_suffix(".answer")
        wait_for(lambda: self.tell("work") or answer.exists(), "the answer")
        said = json.loads(answer.read_text())
        answer.unlink()
        return said

    def check_answer(self, pid=None, before=0):
        self.assertEqual(self.ask("first", pid)["first"], True)
        for _ in range(5):
            self.tell("keep")
        said = self.ask("again", pid)
        self.assertIsNone(said["stopped_after_seconds"])
        kept = [storage for storage in said["storages"] if storage["bytes"] == MIB]
        self.assertEqual({(storage["kind"], storage["type"]) for storage in kept}, {("tensor", "Tensor")})
        chains = [storage["chains"] for storage in kept]
        self.assertEqual(sorted(chains), [[f"__main__.losses[{index}]"] for index in range(before, before + 5)])

    def end(self):
        self.recorder.stdin.close()
        self.assertEqual(self.recorder.stdout.read(), b"0\n")  # how the child ended
        errors = self.recorder.stderr.read().decode().splitlines()
        self.assertEqual([line for line in errors if not line.startswith("tidemark: ")], [])
        self.assertEqual(self.recorder.wait(), 0)

    def test_one_program(self):
        """One after the other: importing PyTorch takes seconds."""
        self.check_one_long_call()
        self.connect()
        self.check_until_the_end(self.check_answers())

    def check_one_long_call(self):
        """The main thread waits for a line while another one allocates."""
        self.tell("thread")
        output = self.folder / "leak.json"
        options = ("--enable-tracking", "--interval", "0.1", "--duration", "1", "--pid", str(self.recorder.pid))

        def sources():
            subprocess.run([TIDEMARK, "leak", *options, "--output", output], env=self.environment, check=True, capture_output=True)
            return json.loads(output.read_text())["tracking"]["sources"]

        (source,) = wait_for(sources, "what the program allocates in its thread")
        self.assertIn("its main thread has stayed in one long call", source["object_types_unknown_because"])
        self.assertEqual(list(self.place.glob("objects.*")), [])

    def check_until_the_end(self, pid):
        """A monitor without --duration ends with the program: its last answer is in the report, with the time."""
        output = self.folder / "end.json"
        options = ("--enable-tracking", "--interval", "0.1", "--pid", str(self.recorder.pid), "--output", output)
        watching = self.kill_at_end(start([TIDEMARK, "leak", *options], env=self.environment))
        question = self.place / f"objects.{pid}.question"
        answer = question.with_suffix(".answer")
        wait_for(lambda: self.tell("work") or answer.exists(), "the first answer")
        for _ in range(5):
            self.tell("keep")
        wait_for(question.exists, "the next question")
        wait_for(lambda: self.tell("work") or answer.exists(), "the next answer")
        read_by = time.monotonic() + 10  # if the file system does not report reading
        wait_for(lambda: answer.stat().st_atime_ns > answer.stat().st_mtime_ns or time.monotonic() > read_by, "the monitor")
        self.assertEqual(self.tell("ends"), [7])
        self.end()
        watching.communicate()
        self.assertEqual(watching.returncode, 0)
        (source,) = [each for each in json.loads(output.read_text())["tracking"]["sources"] if each["pid"] == pid]
        self.assertGreaterEqual(source["new_storages"]["bytes"], 5 * MIB)
        self.assertIn("the program ended before the next query", source["new_storages"]["older_because"])
        holders = [holder["name"] for row in source["object_types"] for holder in row["holders"]]
        self.assertIn("__main__.losses", holders)

    def check_answers(self):
        before = self.tell("facts")
        self.check_answer()
        self.assertEqual(self.tell("facts"), before)
        self.assertEqual(before[0], [])
        child = self.tell("fork")
        self.check_answer(child, before=5)
        return child  # it executes the lines from now on


if __name__ == "__main__":
    unittest.main()
