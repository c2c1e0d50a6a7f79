#!/usr/bin/env python3
"""Writes data/recorded.csv.xz, the labelled runs of real programs that detectors_bench reads (recorded.h has the format).

    make_recorded.py --tidemark BUILD/bin/tidemark --data SHARED/data --python PYTHON_WITH_TORCH OUTPUT.csv.xz

Three sources: the allocator's events of 48 training configurations on an H200 (runs_h200: three steps; the last one is played
repeatedly, a step in 2 s), PyTorch's snapshots of six programs there (played 40 times slower: about a second a step),
and mistakes.py beside this file on a phantom GPU (played so that each step takes a second). Each gives two series:
allocated with its peaks, and reserved.
"""

import argparse
import bisect
import csv
import io
import json
import lzma
import subprocess
import tempfile
from pathlib import Path

KIB = 1024
SAMPLE_S = 0.5
# Kind, whether it leaks in the sense of the benchmark (reserved memory cannot distinguish larger batches from a leak), steps,
# memory.
PHANTOM = [
    ("healthy", "no", 400, "2GiB"),
    ("variable_length", "no", 400, "2GiB"),
    ("evaluation", "no", 400, "2GiB"),
    ("accumulation", "no", 300, "2GiB"),
    ("losses", "yes", 2000, "2GiB"),
    ("containers", "yes", 2000, "1GiB"),
    ("hooks", "yes", 2000, "1GiB"),
    ("caches", "yes", 2000, "1GiB"),
    ("metrics", "yes", 3000, "1GiB"),
    ("batch_slope", "no", 2000, "1GiB"),
]
SNAPSHOTS = ["healthy", "varlen", "varlen_expandable", "varlen_max_split_64", "lora_python_stacks", "oom"]


def thin(points, end):
    """Changes (seconds, bytes) -> rows of (ms, used, peak since the previous row), KiB, until `end` seconds."""
    rows, place, used = [], 0, 0
    for index in range(1, int(end / SAMPLE_S) + 1):
        now, most = index * SAMPLE_S, used
        while place < len(points) and points[place][0] <= now:
            used = points[place][1]
            most = max(most, used)
            place += 1
        rows.append((round(now * 1000), used // KIB, most // KIB))
    return rows


def write(out, name, limit, leaks, rows, *, limit_at=None, grows_from=None, step=1.0, peaks=True):
    def milliseconds(seconds):
        return "" if seconds is None else round(seconds * 1000)

    out.write(f"run,{name},{limit // KIB},{leaks},{milliseconds(limit_at)},{milliseconds(grows_from)},{milliseconds(step)}\n")
    for time, used, peak in rows:
        out.write(f"{time},{used},{peak if peaks else ''}\n")


def repeating(events):
    """(begin, end) of the last step: events that return to the memory before them, and end like the events before them; or
    None.
    """
    sizes = [size for size, _ in events]
    for end in range(len(sizes), len(sizes) * 3 // 4, -1):
        ending = sizes[end - 40 : end]
        for begin in range(end - 60, 40, -1):
            if sizes[begin - 40 : begin] == ending and sum(sizes[begin:end]) == 0 and end - begin > len(sizes) // 10:
                return begin, end
    return None


def add_runs(out, data):
    for index, run in enumerate(json.loads((data / "runs_h200.json").read_text())):
        text = lzma.decompress((data / run["events"]).read_bytes()).decode()
        events = [tuple(map(int, line.split())) for line in text.splitlines()]
        found = repeating(events)
        if found is None:
            print(f"runs_h200 {index}: no step repeats; left out")
            continue
        begin, end = found
        length = end - begin
        step = 2.0
        allocated, time, live = [], 0.0, 0
        reserved = []
        for size, total in events[:end] + events[begin:end] * 100:
            time += step / length
            live += size
            allocated.append((time, live))
            reserved.append((time, total))
        limit = run["measured"]["peak_reserved"] * 5 // 4
        write(out, f"h200_{index:02}_{run['name']}_allocated", limit, "no", thin(allocated, time), step=step)
        write(out, f"h200_{index:02}_{run['name']}_reserved", limit, "no", thin(reserved, time), step=step, peaks=False)


def timeline(tidemark, path):
    done = subprocess.run(
        [tidemark, "timeline", path, "--device", "cuda:0", "--format", "csv", "--points", "20000"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    first = int(rows[0]["time_ns"])
    return [((int(row["time_ns"]) - first) / 1e9, int(row["allocated_bytes"]), int(row["reserved_bytes"])) for row in rows]


def add_timeline(out, name, points, slower, limit, leaks, limit_at=None, grows_from=None, step=1.0):
    end = points[-1][0] * slower
    for view, column in (("allocated", 1), ("reserved", 2)):
        rows = thin([(point[0] * slower, point[column]) for point in points], end)
        label = "undecidable" if view == "reserved" and "batch" in name else leaks
        write(
            out,
            f"{name}_{view}",
            limit,
            label,
            rows,
            limit_at=limit_at and end,
            grows_from=grows_from,
            step=step,
            peaks=view == "allocated",
        )


def add_snapshots(out, tidemark, data, folder):
    for name in SNAPSHOTS:
        path = folder / f"{name}.pickle"
        path.write_bytes(lzma.decompress((data / "snapshots" / f"{name}.pickle.xz").read_bytes()))
        points = timeline(tidemark, path)
        peak = max(reserved for _, _, reserved in points)
        # That program grew its batch until a limit of 4.19 GiB.
        grows = name == "oom"
        slower = 40
        limit = round(4.19 * 2**30) if grows else peak * 5 // 4
        add_timeline(
            out,
            f"snapshot_{'batch_' if grows else ''}{name}",
            points,
            slower,
            limit,
            "no",
            limit_at=grows or None,
            grows_from=0 if grows else None,
            step=7 if grows else 1,
        )


def in_steps(time, ends):
    """A time as a number of steps: each then takes a second."""
    step = bisect.bisect_left(ends, time)
    begin = ends[step - 1] if step else 0
    return step + (time - begin) / (ends[step] - begin)


def add_phantom(out, tidemark, python, folder):
    program = Path(__file__).with_name("mistakes.py")
    for kind, leaks, steps, memory in PHANTOM:
        recording = folder / f"{kind}.tide"
        command = [
            tidemark,
            "plan",
            "--gpu",
            "A100-40GB",
            "--memory",
            memory,
            "--devices",
            "1",
            "--steps",
            "0",
            "--python",
            python,
            "--force",
            "-o",
            recording,
            "--",
            python,
            program,
            kind,
            str(steps),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("{")]
        if not said:
            raise SystemExit(f"{kind}: {done.stderr}")
        told = json.loads(said[-1])
        ends = [end / 1e9 for end in told["ends"]]
        points = [(in_steps(time, ends), *bytes_) for time, *bytes_ in timeline(tidemark, recording) if time <= ends[-1]]
        size = float(memory.removesuffix("GiB")) * 2**30
        if told[
            "out_of_memory"
        ]:  # the limit is the allocator's memory when it got no more: context and libraries have the rest
            size = max(reserved for _, _, reserved in points)
        add_timeline(
            out,
            f"phantom_{kind}",
            points,
            1,
            int(size),
            leaks,
            limit_at=told["out_of_memory"] or None,
            grows_from=told["begin"],
        )
        print(f"{kind}: {len(ends)} steps, {len(points)} points")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemark", required=True)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        add_runs(out, arguments.data)
        add_snapshots(out, arguments.tidemark, arguments.data, Path(folder))
        add_phantom(out, arguments.tidemark, arguments.python, Path(folder))
    arguments.output.write_bytes(lzma.compress(out.getvalue().encode(), preset=9))
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
