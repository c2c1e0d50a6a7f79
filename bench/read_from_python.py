#!/usr/bin/env python3
"""Processor time of tidemark.read() and .summary() compared with the commands that read the same file, in turns.

    PYTHONPATH=build/release/python bench/read_from_python.py build/release/bin/tidemark large.pickle --rounds 7

Python's own start is left out; importing the package and its engine is shown separately.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys

CODE = """
import json, sys, time
began = time.process_time()
import tidemark
tidemark.read
imported = time.process_time()
run = tidemark.read(sys.argv[1])
read = time.process_time()
run.summary()
end = time.process_time()
print(json.dumps({"import": imported - began, "read": read - imported, "read and summary": end - imported}))
"""


def processor_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    seconds = {}
    for _ in range(arguments.rounds):
        for name in ("summary", "table"):
            command = [arguments.program, name, arguments.file, "--format", "json"]
            seconds.setdefault(f"tidemark {name}", []).append(processor_seconds(command))
        printed = subprocess.check_output([sys.executable, "-c", CODE, arguments.file], text=True)
        for name, value in json.loads(printed).items():
            seconds.setdefault(f"Python: {name}", []).append(value)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, median in medians.items():
        print(f"{name:<26} {median:.3f} s")
    print(f"{'read and summary / summary':<26} {medians['Python: read and summary'] / medians['tidemark summary']:.2f}")


if __name__ == "__main__":
    main()
