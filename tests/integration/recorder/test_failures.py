"""Failed writes must not harm the program: one line reports them, it runs to its end, and the written part is readable."""

import re
import subprocess
import unittest

from driver import PYTHON, Case, environment, program, real_pytorch, run, split_stderr

UNTIL = 100_000
GROWING = program("growing.py", "--every", 10_000, "--until", UNTIL)
EXPECTED = "".join(f"{n}\n" for n in range(10_000, UNTIL + 1, 10_000)).encode()
# Bytes that the file may have before the disk is full. The frame that no longer fits, of up to 60 KB, is not written.
DISK = 192 * 1024
FAILING = [PYTHON, "-c", "import sys, torch; print(torch.ones(10).sum().item()); sys.exit(9)"]


def can_mount():
    """Whether this user may mount a file system, in its own namespace."""
    probe = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def limited(limit, command):
    """`command` with a soft limit of this many bytes per file."""
    return ["/bin/sh", "-c", f'ulimit -S -f {limit // 512}; exec "$@"', "sh", *command]


class Failures(Case):
    def check_stopped(self, done, reason, limit, name="run.tide"):
        """The program ended well; one line has the reason why recording stopped; the first events up to there are in the file."""
        self.assertEqual((done.returncode, done.stdout), (0, EXPECTED), done.stderr.decode())
        rest, ours = split_stderr(done.stderr)
        self.assertEqual(rest, b"")
        self.assertEqual(len([line for line in ours if re.search(reason, line)]), 1, ours)
        # Plus the closing lines: the file, and the next command.
        self.assertEqual(len(ours), 3, ours)
        self.assertIn("(stopped early)", ours[1])
        size = (self.folder / name).stat().st_size
        self.assertLessEqual(size, limit)
        self.assertGreater(size, limit // 2, "as much as there was room for")
        sizes = self.sizes(name)
        self.assertGreater(len(sizes), 100)
        self.assertLess(len(sizes), UNTIL)
        self.assertEqual(sizes, [4096 + n for n in range(1, len(sizes) + 1)])
        self.assertFalse(self.summary(name)["data_quality"]["complete"])

    @real_pytorch
    def test_max_size(self):
        limit = 100_000
        done = self.record(GROWING, "--max-size", str(limit))
        self.check_stopped(done, "reached --max-size; the program continues", limit)
        self.assertIn("size_limit", self.issue_ids())

    def test_file_size_limit_of_the_recorder(self):
        program_without = ["/bin/sh", "-c", 'ulimit -S -f unlimited; exec "$@"', "sh", *GROWING]
        self.check_stopped(run(limited(DISK, self.record_command(program_without))), "File too large", DISK)
        self.check_ended_by_the_disk()

    def test_file_size_limit_of_the_program(self):
        # The limit also applies to memory shared by a file descriptor. Python ignores the signal; not every program does.
        dies = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        command = [*FAILING[:2], dies + FAILING[2]]
        self.check_not_recorded(run(limited(96 * 1024, self.record_command(command, "--quiet"))), "file size limit")
        self.assertIn(
            "nothing was recorded: the collector could not start in the program",
            run(limited(96 * 1024, self.record_command(command))).stderr.decode(),
        )

    @unittest.skipUnless(can_mount(), "needs to mount a small file system")
    def test_disk_full(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mount = f'mount -t tmpfs -o size={DISK} none "$0" && "$@"; code=$?; cp "$0/run.tide" "$0/.."; exit $code'
        self.output = disk / "run.tide"
        command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, disk, *self.record_command(GROWING)]
        self.check_stopped(run(command), "No space left on device", DISK)
        self.check_ended_by_the_disk()

    @unittest.skipUnless(can_mount(), "needs to mount a file system")
    def test_without_proc(self):
        """As in some sandboxes: the program runs as it does unrecorded."""
        script = 'mount -t tmpfs none /proc && exec "$@"'
        done = run(["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", *self.record_command(FAILING)])
        self.assertEqual((done.returncode, done.stdout), (9, b"10.0\n"), done.stderr.decode())
        self.assertNotEqual(self.sizes(), [])

    def check_ended_by_the_disk(self):
        self.assertIn("disk", self.issue_ids())
        self.assertNotIn("recorder_killed", self.issue_ids())

    def test_device_full(self):
        self.output = "/dev/full"
        done = self.record(FAILING, "--force", "--quiet")
        self.check_not_recorded(done, "/dev/full: .*No space left on device")

    def check_not_recorded(self, done, reason):
        self.assertEqual((done.returncode, done.stdout), (9, b"10.0\n"), done.stderr.decode())
        rest, ours = split_stderr(done.stderr)
        self.assertEqual((rest, len(ours)), (b"", 1), ours)
        self.assertRegex(ours[0], reason)
        self.assertIn("the program ", ours[0])
        self.assertEqual(self.recordings(), [])

    def test_missing_folder(self):
        self.output = self.folder / "nowhere" / "run.tide"
        self.check_not_recorded(self.record(FAILING), "nowhere: cannot write to this folder: No such file or directory")

    def test_output_that_is_a_folder(self):
        self.output = self.folder
        self.check_not_recorded(self.record(FAILING, "--force", "--quiet"), "Is a directory")

    def test_folder_without_write_permission(self):
        locked = self.folder / "locked"
        locked.mkdir(mode=0o555)
        self.output = locked / "run.tide"
        command = self.record_command(FAILING)
        if subprocess.run(["test", "-w", locked], check=False).returncode == 0:  # root may write everywhere
            if not can_mount():
                self.skipTest("root may write into every folder")
            script = 'mount -t tmpfs -o ro none "$0" && exec "$@"'
            command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, locked, *command]
        self.check_not_recorded(run(command), "locked: cannot write to this folder: (Permission denied|Read-only file system)")

    def test_temporary_folder(self):
        """The socket's folder is gone afterwards; if it cannot be made, /tmp is used."""
        temporary = self.folder / "temporary"
        temporary.mkdir()
        look = [PYTHON, "-c", "import os, torch; torch.ones(10); print(os.listdir(os.environ['XDG_RUNTIME_DIR']))"]
        done = self.record_well(look, env=environment(TIDEMARK_RUNTIME_DIR="", XDG_RUNTIME_DIR=str(temporary)))
        self.assertRegex(done.stdout.decode(), r"^\['tidemark-\w{6}'\]\n$")
        self.assertEqual(list(temporary.iterdir()), [])
        nowhere = str(self.folder / "nowhere")
        self.record_well(
            [PYTHON, "-c", "import torch; torch.ones(30)"],
            "-f",
            env=environment(TIDEMARK_RUNTIME_DIR="", XDG_RUNTIME_DIR=nowhere, TMPDIR=nowhere),
        )
        self.assertIn(120, self.sizes())

    def test_only_folder(self):
        """If TIDEMARK_RUNTIME_DIR is set, no other folder is used."""
        only = self.folder / "only"
        only.mkdir()
        look = [PYTHON, "-c", "import os, torch; torch.ones(10); print(os.listdir(os.environ['TIDEMARK_RUNTIME_DIR']))"]
        done = self.record_well(look, env=environment(TIDEMARK_RUNTIME_DIR=str(only)))
        self.assertRegex(done.stdout.decode(), r"^\['tidemark-\w{6}'\]\n$")
        for unusable, why in ((self.folder / "nowhere", "No such file or directory"), ("/tmp/" + 80 * "x", "File name too long")):
            done = self.record(FAILING, "-f", env=environment(TIDEMARK_RUNTIME_DIR=str(unusable)))
            self.assertEqual((done.returncode, done.stdout), (9, b"10.0\n"))
            self.assertIn(f"no directory for the recorder's socket in TIDEMARK_RUNTIME_DIR: {why}", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
