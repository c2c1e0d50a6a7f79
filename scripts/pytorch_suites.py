#!/usr/bin/env python3
"""Runs test suites of PyTorch plain and recorded, and compares the outcome of every test.

Examples:
  scripts/pytorch_suites.py                                  # Debian's PyTorch 1.13, suites for the CPU, some ten minutes
  scripts/pytorch_suites.py --only test_autograd --options "--stacks both"
  scripts/pytorch_suites.py --python python3 --tests pytorch/test --only test_cuda --options "--driver on"

The suites come from Debian's source package of PyTorch (version --source), which is kept below TIDEMARK_CACHE, or from a
folder that is there already (--tests). A test whose outcome differs runs a second time without recording: it counts only
when both plain runs agree. The exit code is 1 when recording changed an outcome, and 2 when nothing could be run.
"""

import argparse
import collections
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("TIDEMARK_CACHE") or Path.home() / ".cache/tidemark")
DEBIAN = "http://deb.debian.org/debian"
# What allocates most, starts processes and threads, and looks at memory itself.
CPU_SUITES = ["test_autograd", "test_dataloader", "test_indexing", "test_multiprocessing", "test_optim", "test_serialization",
              "test_shape_ops", "test_tensor_creation_ops", "test_torch", "test_utils", "test_view_ops"]


def fail(message):
    print(f"pytorch_suites.py: {message}", file=sys.stderr)
    sys.exit(2)


class Outcomes(unittest.TestResult):
    """Writes a line for each test as it ends, so that a crash shows where it happened."""

    def __init__(self, path):
        super().__init__()
        self.file = open(path, "w", encoding="utf-8", buffering=1)
        self.outcome = "passed"

    def startTest(self, test):
        super().startTest(test)
        self.outcome = "passed"
        self.file.write(json.dumps({"started": test.id()}) + "\n")

    def stopTest(self, test):
        super().stopTest(test)
        self.file.write(json.dumps({"test": test.id(), "outcome": self.outcome}) + "\n")

    def addError(self, test, err):
        self.outcome = "error: " + err[0].__name__

    def addFailure(self, test, err):
        self.outcome = "failed"

    def addSkip(self, test, reason):
        self.outcome = "skipped"

    def addExpectedFailure(self, test, err):
        self.outcome = "expected failure"

    def addUnexpectedSuccess(self, test):
        self.outcome = "unexpected success"

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.outcome = "failed"


def run_suite(name, outcomes):
    """In a process of its own: runs the module `name` of the current folder."""
    sys.argv = [name + ".py"]  # PyTorch's test library reads the arguments
    sys.path.insert(0, os.getcwd())
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    suite.run(Outcomes(outcomes))


def fetch(version):
    """The folder of the tests of Debian's source package, unpacked once. Returns its path."""
    folder = CACHE / f"pytorch-tests-{version}"
    if (folder / "test").is_dir():
        return folder / "test"
    print(f"fetching the tests of PyTorch {version} from {DEBIAN}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "apt"
    for below in ("lists/partial", "cache/archives/partial"):
        (state / below).mkdir(parents=True, exist_ok=True)
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (state / "sources.list").write_text(
        "".join(f"deb-src [signed-by={key}] {DEBIAN} {suite} main\n" for suite in ("bookworm", "trixie", "sid"))
    )
    options = [f"-oDir::Etc::sourcelist={state}/sources.list", "-oDir::Etc::sourceparts=-", f"-oDir::State::lists={state}/lists",
               f"-oDir::Cache={state}/cache"]
    subprocess.run(["apt-get", "-qq", *options, "update"], check=True)
    shown = subprocess.run(["apt-cache", *options, "showsrc", "pytorch"], check=True, capture_output=True, text=True).stdout
    offered = [line.split()[1] for line in shown.splitlines() if line.startswith("Version: ")]
    found = [full for full in offered if full.split("+")[0] == version]
    if not found:
        fail(f"Debian has no source package of PyTorch {version} (it has {', '.join(offered)}); give a folder with --tests")
    # The archive itself is what the tests are in; Debian's patches to it are not needed.
    subprocess.run(["apt-get", "-qq", *options, "source", "--download-only", f"pytorch={found[-1]}"], cwd=folder, check=False)
    archives = list(folder.glob("pytorch_*.orig.tar.*"))
    if not archives:
        fail(f"cannot download the source package of PyTorch {version}")
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        subprocess.run(["tar", "-xf", archives[0], "-C", unpacked, "--wildcards", "*/test", "--strip-components=1"], check=True)
        os.rename(Path(unpacked) / "test", folder / "test")
    archives[0].unlink()
    return folder / "test"


def libraries(python):
    """A folder with what PyTorch's test library imports and PyTorch does not bring."""
    folder = CACHE / "pytorch-tests-libraries"
    if not (folder / "expecttest").is_dir():
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:
            pip = [python, "-m", "pip"]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--target", folder, "expecttest"], check=True)
    return folder


def read_outcomes(path):
    """Outcomes by test; a test that was started and did not end is one that the process died in."""
    outcomes = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        entry = json.loads(line)
        if "started" in entry:
            outcomes[entry["started"]] = "did not end"
        else:
            outcomes[entry["test"]] = entry["outcome"]
    return outcomes


class Suites:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = Path(folder)
        self.tidemark = arguments.tidemark.resolve()  # suites run in the folder of the tests
        self.tests = Path(arguments.tests).resolve() if arguments.tests else fetch(arguments.source)
        paths = [str(self.tests), os.environ.get("PYTHONPATH", "")]
        try:
            subprocess.run([arguments.python, "-c", "import expecttest"], check=True, capture_output=True)
        except subprocess.CalledProcessError:
            paths.insert(1, str(libraries(arguments.python)))
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1",
                            "CI": "", "PYTORCH_TESTING_DEVICE_ONLY_FOR": arguments.device}

    def run(self, name, recorded):
        """Returns the outcomes, the exit code and the seconds."""
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            outcomes = Path(work) / "outcomes"
            command = [self.arguments.python, "-B", __file__, "--run", name, outcomes]
            if recorded:
                command = [self.tidemark, "run", "--quiet", *shlex.split(self.arguments.options),
                           "-o", f"{work}/suite.tide", "--", *command]
            began = time.monotonic()
            try:
                done = subprocess.run(command, cwd=self.tests, env=self.environment, stdin=subprocess.DEVNULL, check=False,
                                      capture_output=True, timeout=self.arguments.timeout)
                code, output = done.returncode, done.stdout + done.stderr
            except subprocess.TimeoutExpired as expired:
                code, output = "time limit", (expired.stdout or b"") + (expired.stderr or b"")
            log = self.folder / f"{name}.{'recorded' if recorded else 'plain'}.log"
            log.write_bytes(output[-1_000_000:])
            if recorded:
                self.check_recordings(name, Path(work))
            return read_outcomes(outcomes), code, time.monotonic() - began

    def check_recordings(self, name, work):
        """Every recording of the suite must be readable."""
        events = 0
        files = sorted(work.glob("*.tide"))
        for file in files:
            done = subprocess.run([self.tidemark, "summary", "--format", "json", file], capture_output=True, check=False)
            if done.returncode != 0:
                fail(f"{name}: {file.name} cannot be read: {done.stderr.decode()}")
            events += json.loads(done.stdout)["event_count"]
        print(f"   {len(files)} recordings, {events:,} events", file=sys.stderr)

    def compare(self, name):
        """Prints a line. Returns how many tests ran, and those whose outcome recording changed."""
        plain, plain_code, plain_s = self.run(name, recorded=False)
        recorded, recorded_code, recorded_s = self.run(name, recorded=True)
        differ = [test for test in {**plain, **recorded} if plain.get(test) != recorded.get(test)]
        unsteady = []
        if differ:
            again, _, _ = self.run(name, recorded=False)
            unsteady = [test for test in differ if again.get(test) != plain.get(test)]
        changed = [test for test in differ if test not in unsteady]
        counts = collections.Counter(outcome.split(":")[0] for outcome in plain.values())
        words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        print(f"{name}: {len(plain)} tests ({words}), plain {plain_s:.0f} s, recorded {recorded_s:.0f} s; "
              f"{len(changed)} changed by recording, {len(unsteady)} differ between plain runs; "
              f"exit codes {plain_code}, {recorded_code}", flush=True)
        for test in changed:
            print(f"   {test}: plain {plain.get(test, 'not run')}, recorded {recorded.get(test, 'not run')}", flush=True)
        for test in unsteady:
            print(f"   {test}: differs between plain runs", flush=True)
        if not plain:
            fail(f"{name}: no test ran; see {self.folder}/{name}.plain.log")
        return len(plain), changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="/usr/bin/python3", help="interpreter that has PyTorch [%(default)s]")
    parser.add_argument("--tidemark", type=Path, default=ROOT / "build/release/bin/tidemark", help="[build/release/bin/tidemark]")
    parser.add_argument("--source", default="1.13.1", help="version of Debian's source package [%(default)s]")
    parser.add_argument("--tests", help="PyTorch's test folder, instead of Debian's source package")
    parser.add_argument("--only", action="append", metavar="SUITE", help="a suite, e.g. test_cuda; may be repeated")
    parser.add_argument("--options", default="", help='options of "tidemark run", e.g. "--stacks both"')
    parser.add_argument("--device", default="cpu", help="device of the tests that exist for several [%(default)s]")
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS", help="of one run of a suite [%(default)s]")
    parser.add_argument("--logs", metavar="FOLDER", help="keep the suites' output here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.logs or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        suites = Suites(arguments, folder)
        total, changed = 0, []
        for name in arguments.only or CPU_SUITES:
            count, differing = suites.compare(name)
            total += count
            changed += differing
    print(f"{total} tests, {len(changed)} changed by recording")
    return 1 if changed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_suite(*sys.argv[2:])
    else:
        sys.exit(main())
