#!/usr/bin/env python3
"""Compares the snapshot reader with Python's own pickle, entry by entry.

    pickle_compare.py PICKLE_DUMP snapshot.pickle[.xz|.gz] ...    the files as they are
    pickle_compare.py PICKLE_DUMP --again snapshot.pickle.xz      pickled again with every protocol, by both of Python's
                                                                  picklers, packed in every way
"""
import gzip
import io
import json
import lzma
import os
import pickle
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77  # for ctest


def load(path):
    opener = {".xz": lzma.open, ".gz": gzip.open}.get(os.path.splitext(path)[1], open)
    with opener(path, "rb") as file:
        return pickle.load(file)


def frames_of(item):
    return tuple((frame["name"], frame["filename"], frame["line"]) for frame in item.get("frames", ()))


def expected_lines(snapshot):
    """What the dump has to say, with the frames themselves where the dump has the number of a stack."""
    for device, trace in enumerate(snapshot["device_traces"]):
        for entry in trace:
            address = entry["device_free"] if entry["action"] == "oom" else entry["addr"]
            yield ["entry", device, entry["action"], address, entry["size"], entry["stream"], entry["time_us"],
                   list(entry.get("pool_id", (0, 0))), frames_of(entry)]
        for key, nothing in (("user_metadata", ("",)), ("compile_context", ("", "N/A"))):
            for number, entry in enumerate(trace):
                if entry.get(key, "") not in nothing:
                    yield [key, device, number, entry[key]]
    for segment in snapshot["segments"]:
        yield ["segment", segment["device"], segment["address"], segment["total_size"], segment["allocated_size"],
               segment["active_size"], segment["requested_size"], segment["stream"],
               list(segment.get("segment_pool_id", (0, 0))), segment["segment_type"] == "large",
               segment["is_expandable"], frames_of(segment)]
        for block in segment["blocks"]:
            yield ["block", block["address"], block["size"], block["requested_size"], block["state"], frames_of(block)]
    for each in snapshot.get("external_annotations", ()):
        yield ["annotation", each["time_us"], each["device"], each["stage"] == "START", each["name"]]
    if "allocator_settings" in snapshot:
        settings = snapshot["allocator_settings"]
        yield ["settings", settings["max_split_size"], settings["garbage_collection_threshold"],
               settings["expandable_segments"], settings["roundup_power2_divisions"],
               settings["PYTORCH_CUDA_ALLOC_CONF"]]
    yield ["unknown", {}, {}, {}]


def dumped_lines(program, path):
    with subprocess.Popen([program, path], stdout=subprocess.PIPE, text=True) as process:
        stacks = []  # by number: the frames, innermost first
        for line in map(json.loads, process.stdout):
            if line[0] == "stack":
                parent = stacks[line[1]] if line[1] >= 0 else ()
                stacks.append((tuple(line[2:]),) + parent)
                continue
            if line[0] in ("entry", "segment", "block"):
                line[-1] = () if line[-1] is None else stacks[line[-1]]
            yield line
    if process.returncode != 0:
        raise SystemExit(f"{path}: pickle_dump ended with {process.returncode}")


def compare(program, path, snapshot):
    count = 0
    dumped = dumped_lines(program, path)
    for expected in expected_lines(snapshot):
        line = next(dumped, None)
        if line != expected:
            raise SystemExit(f"{path}: value {count} differs:\n  Python: {expected}\n  reader: {line}")
        count += 1
    if next(dumped, None) is not None:
        raise SystemExit(f"{path}: the reader has more than the {count} values of Python")
    print(f"{path}: {count} values agree")


def python_dumps(snapshot, protocol):
    out = io.BytesIO()
    pickle._Pickler(out, protocol).dump(snapshot)  # the one that is written in Python
    return out.getvalue()


def pickled_again(snapshot):
    for protocol in (2, 3, 4, 5):
        yield f"c{protocol}.pickle", pickle.dumps(snapshot, protocol)
        yield f"python{protocol}.pickle", python_dumps(snapshot, protocol)
    newest = pickle.dumps(snapshot, 5)
    half = len(newest) // 2
    yield "gzip.pickle", gzip.compress(newest[:half]) + gzip.compress(newest[half:])  # two parts are one file
    yield "xz.pickle", lzma.compress(newest[:half]) + lzma.compress(newest[half:])
    if shutil.which("zstd"):
        packed = [subprocess.run(["zstd", "-c"], input=part, stdout=subprocess.PIPE, check=True).stdout
                  for part in (newest[:half], newest[half:])]
        yield "zstd.pickle", b"".join(packed)


def main():
    program, *paths = sys.argv[1:]
    again = "--again" in paths
    paths = [path for path in paths if path != "--again"]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        print("skipped: there is no", ", ".join(missing))
        return SKIPPED
    for path in paths:
        snapshot = load(path)
        if not again:
            compare(program, path, snapshot)
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, data in pickled_again(snapshot):
                copy = os.path.join(folder, name)
                with open(copy, "wb") as file:
                    file.write(data)
                compare(program, copy, snapshot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
