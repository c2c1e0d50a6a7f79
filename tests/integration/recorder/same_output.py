"""Shared by the drivers of programs that run plain and recorded."""

import functools

from driver import VARIES, Case, run, split_stderr

ONE = ["run.tide"]
PID = r"run\.pid\d+\.tide"

plain_run = functools.lru_cache(run)


class SameOutput(Case):
    """Recording changes nothing; it writes one recording for each process that allocated."""

    def check(self, command, code, files, *options):
        """Runs plain and recorded. `files`: regular expressions of the recordings' names, in order of their names."""
        plain = plain_run(tuple(command))
        recorded = self.record(command, *options)
        self.assertEqual(plain.returncode, code, plain.stderr.decode())
        self.assertEqual(recorded.returncode, code, recorded.stderr.decode())
        self.assertEqual(recorded.stdout, plain.stdout)
        stderr, ours = split_stderr(recorded.stderr)
        self.assertEqual(VARIES.sub(b"", stderr), VARIES.sub(b"", plain.stderr))
        self.assertNotIn(b"\x1b", recorded.stderr)
        # tidemark prints at the end, and names each recording.
        self.assertTrue(recorded.stderr.endswith("".join(ours).encode()))
        names = self.recordings()
        self.assertEqual(len(names), len(files), names)
        for name, pattern in zip(names, files):
            self.assertRegex(name, f"^{pattern}$")
        if names:
            self.assertEqual(len(ours), len(names) + 1)
            for name in names:
                self.assertEqual(len([line for line in ours if f"/{name}: " in line]), 1, ours)
                self.assertTrue(self.summary(name)["data_quality"]["complete"], self.summary(name)["data_quality"])
        return plain, ours
