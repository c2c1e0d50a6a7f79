#!/usr/bin/env python3
"""Prints the longest tests in the output of `ctest --output-junit FILE`.

    scripts/test_times.py [--count N] [--keep FILE.csv] FILE.xml...

Seconds are wall time: tests that run concurrently take longer than alone. --keep: all of them, as run, test, seconds,
longest first.
"""

import argparse
import csv
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def read(path):
    """(name of the run, name of the test, seconds) of each test that ran."""
    cases = ElementTree.parse(path).getroot().iter("testcase")
    return [(path.stem, case.get("name"), float(case.get("time"))) for case in cases if case.get("status") != "disabled"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    rows = sorted((row for path in options.files for row in read(path)), key=lambda row: -row[2])
    if options.keep:
        with options.keep.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("run", "test", "seconds"))
            writer.writerows((run, test, f"{seconds:.2f}") for run, test, seconds in rows)
    for run, test, seconds in rows[: options.count]:
        print(f"{seconds:7.1f} s  {run}: {test}")
    print(f"{sum(row[2] for row in rows):7.1f} s  all {len(rows)} tests, one after the other")
    return 0


if __name__ == "__main__":
    sys.exit(main())
