#!/usr/bin/env python3
"""Runs tests of Python's unittest and writes the outcome of each as it ends: unittest_outcomes.py FILE SECONDS NAME...

Each NAME is a module of the current folder, or a class or test in it. FILE gets a line of JSON for each test that starts and
for each that ends. Tests whose outcome FILE has already are left out, so that a second process continues after the first one
died. A test that takes longer than SECONDS ends the process with SIGALRM, after the stacks of its threads were printed.
"""

import faulthandler
import json
import os
import signal
import sys
import time
import unittest
from pathlib import Path


def append(path, **entry):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


class Outcomes(unittest.TestResult):
    def __init__(self, path, limit_s):
        super().__init__()
        self.path = path
        self.limit_s = limit_s
        self.process = os.getpid()
        self.running = None
        self.outcome = "passed"
        self.began = 0.0

    def write(self, **entry):
        if os.getpid() == self.process:  # a process forked by a test can come here too
            append(self.path, **entry)

    def restart_limit(self):
        """Also between tests: setting up a class, or ending the process, can hang as well."""
        signal.setitimer(signal.ITIMER_REAL, self.limit_s)

    def startTest(self, test):
        super().startTest(test)
        self.running = test
        self.outcome = "passed"
        self.began = time.monotonic()
        self.write(started=test.id())
        self.restart_limit()

    def stopTest(self, test):
        super().stopTest(test)
        self.running = None
        self.write(test=test.id(), outcome=self.outcome, seconds=round(time.monotonic() - self.began, 3))
        self.restart_limit()

    def note(self, test, outcome):
        self.outcome = outcome
        if self.running is None:  # setting up a class or module is not a test
            self.write(test=test.id(), outcome=outcome, seconds=0)

    def addError(self, test, err):
        self.note(test, "error: " + err[0].__name__)

    def addFailure(self, test, err):
        self.note(test, "failed")

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.note(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self.note(test, "unexpected success")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.outcome = "failed"


class File:
    """The content of a file of outcomes."""

    def __init__(self, path):
        self.outcomes = {}  # by test
        self.seconds = 0.0
        self.open = None  # the test that started and did not end
        self.count = 0  # of all tests, including those that did not run yet
        self.complete = False
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            entry = json.loads(line)
            self.open = entry.get("started")
            self.count = entry.get("count", self.count)
            self.complete = self.complete or "complete" in entry
            if "test" in entry:
                self.outcomes[entry["test"]] = entry["outcome"]
                self.seconds += entry["seconds"]


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def main(path, limit_s, *names):
    sys.argv = [names[0].split(".")[0] + ".py"]  # PyTorch's test library reads the arguments
    sys.path.insert(0, os.getcwd())
    faulthandler.register(signal.SIGALRM, chain=True)
    known = File(Path(path)).outcomes
    outcomes = Outcomes(path, float(limit_s))
    outcomes.restart_limit()
    tests = list(each(unittest.defaultTestLoader.loadTestsFromNames(names)))
    outcomes.write(count=len(tests))
    unittest.TestSuite(test for test in tests if test.id() not in known).run(outcomes)
    if not outcomes.shouldStop:  # PyTorch stops when its device is unusable: a new process continues
        outcomes.write(complete=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
