#!/usr/bin/env python3
"""Runs clang-tidy over the translation units of a build, and caches the units without findings.

    scripts/tidy.py -p BUILD [-j N] [--program CLANG_TIDY] [--checks CHECKS] [--changed-since COMMIT]
                    [--seconds N] REGEX

REGEX: units whose path begins with it, such as "src/report/". --changed-since: of these, units with a source or a header whose
code differs from COMMIT (other comments alone do not count, unless they contain NOLINT); all of them if git does not know
COMMIT, or .clang-tidy or a preset of CMake changed. --seconds: after this time no further unit is read; how many were left
out is printed.

The path of a source is its path below the repository; that of a unit of several sources (CMAKE_UNITY_BUILD) is its path
below BUILD, in the folder of its target. A unit is read again if it, a header that it includes, .clang-tidy,
the checks or clang-tidy's version changed: the cache's key is the text after preprocessing, including comments
(which contain NOLINT). The cache is tidy/ below TIDEMARK_CACHE (default: ~/.cache/tidemark).
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("TIDEMARK_CACHE") or Path.home() / ".cache" / "tidemark") / "tidy"
MOST_REMEMBERED = 20_000


def run(command, **options):
    return subprocess.run(command, capture_output=True, check=False, **options)


def code_of(text):
    """C++ without its comments and with single spaces. Strings and comments that contain NOLINT stay."""
    pattern = r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
    found = re.sub(
        pattern, lambda match: match[0] if match[0].startswith('"') or "NOLINT" in match[0] else " ", text, flags=re.DOTALL
    )
    return " ".join(found.split())


def has_other_code(name, commit):
    """Whether the code of a file differs from that of a commit."""
    before = run(["git", "show", f"{commit}:{name}"], cwd=ROOT)
    path = ROOT / name
    if before.returncode != 0 or not path.is_file():
        return True
    return code_of(before.stdout.decode(errors="replace")) != code_of(path.read_text(errors="replace"))


def changed_since(commit):
    """The paths whose code differs from it, committed or not; None if that is unknown or concerns all units."""
    compared = run(["git", "diff", "--name-only", commit, "--"], cwd=ROOT)
    new = run(["git", "ls-files", "--others", "--exclude-standard"], cwd=ROOT)
    if compared.returncode != 0 or new.returncode != 0:
        return None
    names = {name for name in (compared.stdout + new.stdout).decode().split("\n") if name}
    if names & {".clang-tidy", "CMakePresets.json"}:
        return None
    return {ROOT / name for name in names if has_other_code(name, commit)}


def preprocess_command(entry):
    """The compilation without its launcher and its output, as preprocessing that keeps comments."""
    words = shlex.split(entry["command"])
    if Path(words[0]).name == "ccache":
        words = words[1:]
    text = " ".join(map(shlex.quote, words))
    text = re.sub(r" -Xclang -include-pch -Xclang \S+", "", text)  # the headers themselves instead
    return shlex.split(re.sub(r" (-c|-o \S+)(?= |$)", "", text)) + ["-E", "-C"]


def sources_of(preprocessed, folder):
    """The files whose text is in a unit, by the preprocessor's line markers."""
    return {Path(os.path.normpath(folder / name)) for name in re.findall(r'^# \d+ "([^"<]+)"', preprocessed, re.MULTILINE)}


def key_of(entry, fixed, changed):
    """The key of one reading of a source; None: cannot be preprocessed; "": unchanged."""
    done = run(preprocess_command(entry), cwd=entry["directory"])
    if done.returncode != 0:
        return None
    if changed is not None:
        sources = sources_of(done.stdout.decode(errors="replace"), Path(entry["directory"]))
        if not sources & changed:
            return ""
    digest = hashlib.sha256(fixed)
    digest.update(entry["command"].replace(str(ROOT), "").encode())
    digest.update(done.stdout.replace(str(ROOT).encode(), b""))
    return digest.hexdigest()


def check(entry, options, fixed, changed, deadline):
    """("known": remembered, or unchanged; "late": the time was over; "read"), and what is wrong or None."""
    key = key_of(entry, fixed, changed)
    if key == "":
        return "known", None
    marker = CACHE / key[:2] / key if key else None
    if marker and marker.exists():
        os.utime(marker)
        return "known", None
    if time.monotonic() > deadline:
        return "late", None
    # To the static analyzer, the sources of a unit are headers. libstdc++ 12 calls what is deprecated, which newer versions
    # of clang report where they check a program.
    extra = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-opt-analyze-headers", "-Wno-deprecated-declarations")]
    command = [options.program, "--quiet", "-p", options.build, *extra, entry["file"]]
    if options.checks:
        command.insert(1, f"--checks={options.checks}")
    done = run(command, cwd=ROOT)
    if done.returncode != 0:
        return "read", done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    if marker:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    return "read", None


def forget_the_oldest():
    markers = sorted((path for path in CACHE.glob("*/*")), key=lambda path: path.stat().st_mtime)
    for path in markers[: max(0, len(markers) - MOST_REMEMBERED)]:
        path.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-p", dest="build", required=True)
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--program", default="clang-tidy")
    parser.add_argument("--checks", default="")
    parser.add_argument("--changed-since", metavar="COMMIT")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("regex")
    options = parser.parse_args()
    build = Path(options.build).resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["directory"], entry["file"])
        base = next((folder for folder in (build, ROOT) if folder in file.parents), None)
        if base and re.match(options.regex, file.relative_to(base).as_posix()):
            entries.setdefault(str(file), entry)
    largest_first = sorted(entries.values(), key=lambda entry: -Path(entry["directory"], entry["file"]).stat().st_size)
    version = run([options.program, "--version"]).stdout
    fixed = b"\0".join([version, (ROOT / ".clang-tidy").read_bytes(), options.checks.encode()])
    changed = changed_since(options.changed_since) if options.changed_since else None
    deadline = time.monotonic() + options.seconds
    counts = collections.Counter()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for outcome, problem in pool.map(lambda entry: check(entry, options, fixed, changed, deadline), largest_first):
            counts[outcome] += 1
            if problem:
                failed += 1
                print(problem, flush=True)
    forget_the_oldest()
    late = f", {counts['late']} left out for lack of time" if counts["late"] else ""
    print(f"clang-tidy: {len(entries)} units, {counts['known']} not read again{late}, {failed} with problems", file=sys.stderr)
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
