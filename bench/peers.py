#!/usr/bin/env python3
"""Compares Tidemark with memray, torch's profiler, pytest-memray and Accelerate's estimator, on the same programs with known truth.

    scripts/setup.sh --python            # memray, Accelerate, transformers and peft in ~/.cache/tidemark/python-tools
    python=~/.cache/tidemark/python-tools/bin/python
    $python bench/peers.py --build build/release                        # all sections
    $python bench/peers.py --build build/release peaks times --rounds 7

peaks   bytes at the peak: memray's, the profiler's, Tidemark's, and those of the tensors' storages
times   processor time of a training step, of starting to record, and of the whole command (with `tidemark run`, not with the
        recorder that tidemark.record() starts, which is not a child)
files   size of the results, and processor time of reading them
tests   pytest-memray's limit_memory and Tidemark's
models  Accelerate's estimates, analyze_model and `tidemark model`, on models whose storages are added up (bench/peers_models.py)

Processor time is user and system time, of the process and, for commands, of all its children. Tools take turns, round by round,
and medians are given: other programs on the machine change processor time by some percent, wall time by factors.
"""

import argparse
import collections
import inspect
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

from peers_table import table
from workloads import WORKLOADS

HERE = pathlib.Path(__file__).resolve().parent
STEPS = {"dense": 300, "wide": 5}
TOOLS = ("plain", "tidemark run", "tidemark run, both stacks", "tidemark.record()", "memray run", "memray run --native",
         "memray.Tracker", "torch.profiler")  # fmt: skip
INSIDE = {"tidemark.record()": "tidemark", "memray.Tracker": "memray", "torch.profiler": "profiler"}


def run(command, accepted=(0,), **options):
    """Its stdout, and its processor seconds including its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in accepted:
        sys.exit(f"{command} failed:\n{done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Bench:
    def __init__(self, build, folder, rounds, phantom_python):
        self.phantom_python = phantom_python
        self.tidemark, self.folder, self.rounds = build / "bin" / "tidemark", pathlib.Path(folder), rounds
        os.environ["PYTHONPATH"] = str(build / "python")

    def output(self, tool, workload):
        return self.folder / re.sub(r"\W+", "_", f"{tool} {workload}")

    def program(self, tool, workload, steps=None):
        """Runs it once under the tool: its own measurements, with `command`, its processor seconds."""
        file = self.output(tool, workload)
        words = [HERE / "peers_program.py", workload, "--steps", steps or STEPS[workload]]
        command = [sys.executable, *words]
        if tool in INSIDE or tool == "storages":
            command += ["--tool", INSIDE.get(tool, tool), "--output", file]
        elif tool.startswith("tidemark run"):
            stacks = "both" if tool.endswith("both stacks") else "python"
            command = [self.tidemark, "run", "-q", "-f", "--stacks", stacks, "-o", file, "--", *command]
        elif tool.startswith("memray run"):
            native = ["--native"] if tool.endswith("native") else []
            command = [sys.executable, "-m", "memray", "run", "-q", "-f", *native, "-o", file, *words]
        printed, seconds = run(command)
        return {**json.loads(printed.splitlines()[-1]), "command": seconds}

    # The true values by each tool.

    def by_memray(self, file, lines):
        import memray

        reader = memray.FileReader(str(file))
        found = {"peak": reader.metadata.peak_memory, "records": reader.metadata.total_allocations}
        records = list(reader.get_high_watermark_allocation_records(merge_threads=True)) if lines else []
        for name, line in lines.items():
            found[name] = sum(
                record.size for record in records
                if any(frame[2] == line and frame[1].endswith("workloads.py") for frame in record.stack_trace()))  # fmt: skip
        return found

    def by_tidemark(self, file, lines):
        said = json.loads(run([self.tidemark, "table", file, "--device", "cpu", "--top", "0", "--format", "json"])[0])
        section = said["sections"][0]
        found = {"peak": section["allocated_bytes"], "records": said["event_count"]}
        for name, line in lines.items():
            found[name] = sum(
                row["bytes"] for row in section["rows"]
                if any(frame.get("line") == line and (frame.get("file") or "").endswith("workloads.py")
                       for frame in row["stack"]["frames"]))  # fmt: skip
        return found

    def by_profiler(self, file):
        events = json.loads(file.read_text())["traceEvents"]
        memory = [event["args"] for event in events if event.get("name") == "[memory]"]
        return {"peak": max(event["Total Allocated"] for event in memory), "records": len(memory)}

    def peaks(self):
        for workload in STEPS:
            source, first = inspect.getsourcelines(WORKLOADS[workload])
            lines = {
                text: next(first + index for index, line in enumerate(source) if text in line)
                for text in ("nn.Linear(", "backward()", "optimizer.step()")
            }
            steps = min(STEPS[workload], 40)
            truth = self.program("storages", workload, steps)["said"]
            rows = [["the tensors' storages", truth["peak"], *(truth["lines"].get(str(line), 0) for line in lines.values())]]
            for tool in TOOLS[1:]:
                said, file = self.program(tool, workload, steps)["said"], self.output(tool, workload)
                if tool == "torch.profiler":
                    rows.append([tool, self.by_profiler(file)["peak"], *(None for _ in lines)])
                    rows.append(["its sum of self_cpu_memory_usage", said["self_cpu_memory_usage"], *(None for _ in lines)])
                else:
                    found = (self.by_memray if "memray" in tool else self.by_tidemark)(file, lines)
                    rows.append([tool, *(found[key] for key in ("peak", *lines))])
            table(f"Bytes at the peak, `{workload}`", ["", "peak", *(f"line of `{text}`" for text in lines)], rows)

    def times(self):
        for workload, steps in STEPS.items():
            taken = collections.defaultdict(list)
            for index in range(self.rounds):
                shift = index % len(TOOLS)
                for tool in TOOLS[shift:] + TOOLS[:shift]:
                    taken[tool].append(self.program(tool, workload))
            rows = []
            for tool in TOOLS:
                one, start, end = (
                    [sample["took"][what]["processor"] for sample in taken[tool]] for what in ("steps", "start", "end")
                )
                ratios = sorted(ours / plain["took"]["steps"]["processor"] for ours, plain in zip(one, taken["plain"]))
                inside = [f"{statistics.median(values):.2f}" if tool in INSIDE else "" for values in (start, end)]
                rows.append([
                    tool, f"{statistics.median(one) / steps * 1e3:.2f}",
                    f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f})", *inside,
                    f"{statistics.median(sample['command'] for sample in taken[tool]):.2f}"])  # fmt: skip
            head = ["", "ms a step", "× plain (least–most)", "start, s", "end, s", "whole command, s"]
            table(f"Processor time, `{workload}`, {steps} steps, {self.rounds} rounds", head, rows)

    def files(self):
        memray = [sys.executable, "-m", "memray"]
        for workload, steps in STEPS.items():
            readers = {
                "tidemark run": {
                    "summary": [self.tidemark, "summary"],
                    "report": [self.tidemark, "report", "-o", self.folder / "report.html"],
                },
                "tidemark run, both stacks": {"summary": [self.tidemark, "summary"]},
                "memray run": {
                    "stats": [*memray, "stats"],
                    "summary": [*memray, "summary"],
                    "flamegraph": [*memray, "flamegraph", "-f", "-o", self.folder / "flamegraph.html"],
                },
                "memray run --native": {"stats": [*memray, "stats"]},
                "torch.profiler": {},
            }
            rows = []
            for tool, commands in readers.items():
                took, file = self.program(tool, workload)["took"], self.output(tool, workload)
                seconds = {
                    f"`{name}`": statistics.median(run([*command, file])[1] for _ in range(3))
                    for name, command in commands.items()
                }
                if tool == "torch.profiler":
                    found = self.by_profiler(file)
                    seconds = {"ending": took["end"]["processor"], "exporting": took["export"]["processor"]}
                else:
                    found = (self.by_memray if "memray" in tool else self.by_tidemark)(file, {})
                size = file.stat().st_size
                reading = ", ".join(f"{name} {taken:.2f}" for name, taken in seconds.items())
                rows.append([tool, found["records"], size, f"{size / found['records']:.2f}", reading])
            head = ["", "events", "bytes", "bytes an event", "processor seconds of reading"]
            table(f"Files, `{workload}`, {steps} steps", head, rows)

    def tests(self):
        """One test holds 160 MiB of tensors at its peak and ends with 64; the limit is the need reported by each tool in its
        failure.
        """
        test = self.folder / "test_peak.py"
        test.write_text(
            "import pytest, torch\n\n{mark}\ndef test_peak():\n"
            "    kept = torch.ones(16, 1024, 1024)\n    half = torch.ones(8, 1024, 1024)\n    sums = half + torch.ones(8, 1024, 1024) * 2\n"
            "    del half, sums\n    assert kept[0, 0, 0] == 1\n"
        )
        text, rows = test.read_text(), []
        variants = {
            "plain": ("", []),
            "pytest-memray": ('@pytest.mark.limit_memory("1 MB")', ["--memray"]),
            "pytest --tidemark": ('@pytest.mark.limit_memory("1 MiB", device="cpu")', ["--tidemark"]),
        }
        for name, (mark, options) in variants.items():
            test.write_text(text.replace("{mark}", mark))
            plugins = ["-p", "tidemark.pytest_plugin"]
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--rootdir",
                self.folder,
                *plugins,
                *options,
                test,
            ]
            seconds, printed = [], ""
            for _ in range(self.rounds):
                printed, taken = run(command, accepted=(0, 1), cwd=self.folder)  # 1: the limit was exceeded
                seconds.append(taken)
            said = [line.strip("│E ") for line in printed.splitlines() if re.search(r"[0-9.]+ ?[KMG]i?B", line)]
            rows.append([name, f"{statistics.median(seconds):.2f}", "; ".join(said[:3])])
        table("A test whose tensors take 160 MiB at their peak", ["", "processor seconds", "what it says"], rows)

    def models(self):
        plans = ["--phantom-python", self.phantom_python] if self.phantom_python else []
        subprocess.run([sys.executable, HERE / "peers_models.py", self.tidemark, self.folder, *plans], check=True)


SECTIONS = ("peaks", "times", "files", "tests", "models")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (default: all)")
    parser.add_argument(
        "--build", type=pathlib.Path, default=HERE.parent / "build" / "release", help="with bin/tidemark and python/"
    )
    parser.add_argument(
        "--phantom-python", help="~/.cache/tidemark/torch-2.11.0/bin/python, or another for CUDA: plans training too"
    )
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    unknown = set(args.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args.build.resolve(), folder, args.rounds, args.phantom_python)
        for section in args.sections or SECTIONS:
            getattr(bench, section)()


if __name__ == "__main__":
    main()
