#!/usr/bin/env python3
"""Makes a large PyTorch snapshot out of a small one: its trace, repeated one after the other.

    bench/make_large_snapshot.py lora_python_stacks.pickle.xz lora_x10.pickle --times 10

Each repetition happens after the one before it and starts with nothing allocated: what is alive at the end of a
repetition is freed, and its segments are released, before the next begins. The last repetition is unchanged, so that
the final segments are still right.
"""
import argparse
import gzip
import lzma
import pickle

OPENERS = {b"\xfd7zX": lzma.open, b"\x1f\x8b": gzip.open}


def load(path):
    with open(path, "rb") as file:
        magic = file.read(4)
    opener = next((value for key, value in OPENERS.items() if magic.startswith(key)), open)
    with opener(path, "rb") as file:
        return pickle.load(file)


def closing_entries(trace, time_us):
    """Entries that free every block and segment left after `trace`."""
    blocks, segments = {}, {}
    for entry in trace:
        action = entry["action"]
        if action == "alloc":
            blocks[entry["addr"]] = entry
        elif action == "free_completed":
            blocks.pop(entry["addr"], None)
        elif action == "segment_alloc":
            segments[entry["addr"]] = entry
        elif action == "segment_free":
            segments.pop(entry["addr"], None)
    closing = []
    for block in blocks.values():
        closing.append({**block, "action": "free_requested", "time_us": time_us})
        closing.append({**block, "action": "free_completed", "time_us": time_us})
    closing += ({**segment, "action": "segment_free", "time_us": time_us} for segment in segments.values())
    return closing


def fresh(text):
    """A separate object: PyTorch makes this string again for every entry, and the pickle contains it as often."""
    return text.encode().decode() if len(text) > 1 else text


def repetition(trace, shift_us):
    """The trace, shifted in time. Frames are shared with the other repetitions, lists of them only within this one."""
    lists = {}
    for entry in trace:
        copy = {**entry, "time_us": entry["time_us"] + shift_us}
        if "compile_context" in copy:
            copy["compile_context"] = fresh(copy["compile_context"])
        if "frames" in copy:
            frames = copy["frames"]
            copy["frames"] = lists.setdefault(id(frames), list(frames))
        yield copy


def repeated(trace, times):
    if not trace:
        return trace
    first, last = trace[0]["time_us"], trace[-1]["time_us"]
    once = trace + closing_entries(trace, last + 1)
    step = last - first + 1000
    result = []
    for n in range(times):
        result += repetition(once if n + 1 < times else trace, n * step)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshot")
    parser.add_argument("output")
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    snapshot = load(options.snapshot)
    snapshot["device_traces"] = [repeated(trace, options.times) for trace in snapshot["device_traces"]]
    with open(options.output, "wb") as file:
        pickle.dump(snapshot, file)
    print(sum(map(len, snapshot["device_traces"])), "entries")


if __name__ == "__main__":
    main()
