#!/usr/bin/env python3
"""Runs test suites of PyTorch plain and recorded, and compares the outcome of every test.

Examples:
  scripts/pytorch_suites.py                                  # Debian's PyTorch 1.13, suites for the CPU, some ten minutes
  scripts/pytorch_suites.py --only test_autograd --options "--stacks both"
  scripts/pytorch_suites.py --python python3 --tests pytorch/test --only test_cuda --device cuda --options "--driver on"

The suites come from Debian's source package of PyTorch (version --source), which is kept below TIDEMARK_CACHE, or from a
folder that is there already (--tests). If the process dies in a test, or the test exceeds --test-limit, that is its
outcome, and a new process continues after it. A test whose outcome differs runs a second time, plain and recorded: it was
changed by recording if it differs again, and is unsteady otherwise. At --time-limit the tests reached by both runs
are compared, and the number of the others is printed. The exit code is 1 when recording changed an outcome or made a
recording that cannot be read, and 2 if no test of a suite passed without recording.
"""

import argparse
import collections
import contextlib
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytorch_sources
import unittest_outcomes

ROOT = Path(__file__).resolve().parent.parent
# Suites that start processes and threads, create and free the most tensors, and inspect memory themselves, in some ten minutes.
CPU_SUITES = ["test_autograd", "test_dataloader", "test_indexing", "test_multiprocessing", "test_shape_ops",
              "test_tensor_creation_ops", "test_torch", "test_utils", "test_view_ops"]


def died(code):
    """The outcome of a test in which the process ended with this exit code."""
    if code == -signal.SIGALRM:
        return "timed out"
    return f"died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"


class Suites:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = Path(folder)
        self.tidemark = arguments.tidemark.resolve()  # suites run in the folder of the tests
        self.unreadable = 0
        self.ends = time.monotonic() + arguments.time_limit
        self.tests = Path(arguments.tests).resolve() if arguments.tests else pytorch_sources.tests(arguments.source)
        paths = [str(self.tests), os.environ.get("PYTHONPATH", "")]
        imported = subprocess.run([arguments.python, "-c", "import expecttest"], cwd=self.tests, capture_output=True, check=False)
        if imported.returncode != 0:
            paths.insert(1, str(pytorch_sources.libraries(arguments.python)))
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1",
                            "CI": "", "PYTORCH_TESTING_DEVICE_ONLY_FOR": arguments.device}

    def run_process(self, command, log, ends):
        """Returns the exit code, negative for a signal, or None at the time limit."""
        process = subprocess.Popen(command, cwd=self.tests, env=self.environment, preexec_fn=os.setpgrp,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            return process.wait(max(0, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also workers that a test left behind
            process.wait()

    def run(self, label, names, recorded, ends):
        """Runs the tests, in a new process after each that died. Returns their output, and whether time ran out."""
        kind = "recorded" if recorded else "plain"
        path, log_path = (self.folder / f"{label}.{kind}.{ending}" for ending in ("jsonl", "log"))
        if not (self.arguments.resume and names == [label]):
            path.unlink(missing_ok=True)
            log_path.unlink(missing_ok=True)
        file = unittest_outcomes.File(path)
        with tempfile.TemporaryDirectory() as work, open(log_path, "ab") as log:
            for number in itertools.count():
                if file.complete or time.monotonic() >= ends:
                    break
                command = [self.arguments.python, "-B", unittest_outcomes.__file__, path, str(self.arguments.test_limit), *names]
                if recorded:
                    command = [self.tidemark, "run", "--quiet", *shlex.split(self.arguments.options),
                               "-o", f"{work}/{number}.tide", "--", *command]
                code = self.run_process(command, log, ends)
                known = len(file.outcomes)
                file = unittest_outcomes.File(path)
                if code is not None and (code or file.open):
                    unittest_outcomes.append(path, test=file.open or f"{label}, outside its tests", outcome=died(code), seconds=0)
                    file = unittest_outcomes.File(path)
                if len(file.outcomes) == known:  # a further process would make no progress
                    break
            cut = not file.complete and time.monotonic() >= ends
            if recorded:
                self.check_recordings(label, Path(work))
        return file, cut

    def check_recordings(self, name, work):
        """Every recording of the suite must be readable."""
        events = complete = 0
        files = sorted(work.glob("*.tide"))
        for file in files:
            done = subprocess.run([self.tidemark, "summary", "--format", "json", file], capture_output=True, check=False)
            if done.returncode != 0:
                print(f"{name}: {file.name} cannot be read: {done.stderr.decode()}", flush=True)
                self.unreadable += 1
                continue
            summary = json.loads(done.stdout)
            events += summary["event_count"]
            complete += summary["data_quality"]["complete"]
        print(f"   {len(files)} recordings, {complete} of them complete, {events:,} events", file=sys.stderr, flush=True)

    def compare(self, suite):
        """Prints the comparison of a suite's runs. Returns how many tests ran, changed, were unsteady and did not run."""
        began = time.monotonic()
        plain, plain_cut = self.run(suite, [suite], recorded=False, ends=began + 0.45 * (self.ends - began))
        between = time.monotonic()
        recorded, recorded_cut = self.run(suite, [suite], recorded=True, ends=self.ends)
        plain_s, recorded_s = between - began, time.monotonic() - between
        tests = {**plain.outcomes, **recorded.outcomes}
        missing = 0
        if plain_cut or recorded_cut:
            tests = [test for test in tests if test in plain.outcomes and test in recorded.outcomes]
            missing = max(plain.count, recorded.count) - len(tests)
        if not any(outcome == "passed" for outcome in plain.outcomes.values()):
            why = "in the time limit" if plain_cut else "without recording"
            print(f"{suite}: no test passed {why}; --results FOLDER keeps the output", flush=True)
            return collections.Counter(unusable=1, missing=missing)
        differ = [test for test in tests if plain.outcomes.get(test) != recorded.outcomes.get(test)]
        changed, unsteady = self.judge(suite, differ, plain.outcomes, recorded.outcomes)
        counts = collections.Counter(plain.outcomes[test].split(":")[0] for test in tests if test in plain.outcomes)
        words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        print(f"{suite}: {len(tests)} tests ({words}), plain {plain_s:.0f} s, recorded {recorded_s:.0f} s; "
              f"{len(changed)} changed by recording, {len(unsteady)} unsteady, {missing} did not run in the time limit", flush=True)
        for title, lines in (("changed", changed), ("unsteady", unsteady)):
            for line in lines:
                print(f"   {title}: {line}", flush=True)
        return collections.Counter(tests=len(tests), changed=len(changed), unsteady=len(unsteady), missing=missing)

    def judge(self, suite, differ, plain, recorded):
        """Runs the tests with different outcomes once more. Returns lines for those that differ again, and for the others."""
        if not differ:
            return [], []
        module = suite.split(".")[0] + "."
        names = differ if all(test.startswith(module) for test in differ) else [suite]
        label = suite + ".again"
        plain_again, recorded_again = (self.run(label, names, kind, self.ends)[0].outcomes for kind in (False, True))
        changed, unsteady = [], []
        for test in differ:
            outcomes = [run.get(test, "not run") for run in (plain, recorded, plain_again, recorded_again)]
            again = outcomes[2] == outcomes[0] and outcomes[3] != outcomes[0]
            line = "{}: plain {}, recorded {}; again: plain {}, recorded {}".format(test, *outcomes)
            (changed if again or test not in plain_again else unsteady).append(line)
        return changed, unsteady


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="/usr/bin/python3", help="interpreter that has PyTorch [%(default)s]")
    parser.add_argument("--tidemark", type=Path, default=ROOT / "build/release/bin/tidemark", help="[build/release/bin/tidemark]")
    parser.add_argument("--source", default="1.13.1", help="version of Debian's source package [%(default)s]")
    parser.add_argument("--tests", help="PyTorch's test folder, instead of Debian's source package")
    parser.add_argument("--only", action="append", metavar="SUITE",
                        help="a suite, e.g. test_cuda, or a class or test in it; may be repeated")
    parser.add_argument("--options", default="", help='options of "tidemark run", e.g. "--stacks both"')
    parser.add_argument("--device", default="cpu", help="device of the tests that exist for several [%(default)s]")
    parser.add_argument("--test-limit", type=float, default=300, metavar="SECONDS", help="of one test [%(default)s]")
    parser.add_argument("--time-limit", type=float, default=7200, metavar="SECONDS", help="of everything [%(default)s]")
    parser.add_argument("--results", metavar="FOLDER",
                        help="keep the outcomes, written as each test ends, and the suites' output here")
    parser.add_argument("--resume", action="store_true", help="go on from the outcomes in the folder of --results")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # child processes are ended, and temporary files are removed
    total = collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.results or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        suites = Suites(arguments, folder)
        for name in arguments.only or CPU_SUITES:
            if time.monotonic() >= suites.ends:
                print(f"{name}: not run, the time limit was reached", flush=True)
                continue
            total += suites.compare(name)
    print(f"{total['tests']} tests, {total['changed']} changed by recording, {total['unsteady']} unsteady, "
          f"{total['missing']} did not run in the time limit")
    return 1 if total["changed"] or suites.unreadable else 2 if total["unusable"] else 0


if __name__ == "__main__":
    sys.exit(main())
