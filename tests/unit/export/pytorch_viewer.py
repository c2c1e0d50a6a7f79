"""Exports snapshots to snapshots, and reads these with Python's pickle and PyTorch's own viewer.

python pytorch_viewer.py TIDEMARK FOLDER. The viewer is the _memory_viz.py of the PyTorch beside this interpreter, loaded
without PyTorch itself; without one only the pickles are compared.
"""

import collections
import importlib.util
import lzma
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = ["default", "streams", "private_pools", "private_pools_expandable", "out_of_memory", "out_of_memory_max_split",
         "empty_cache_expandable", "threads", "late", "late_expandable"]


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"the pickle would run {module}.{name}")


def viewer():
    """_memory_viz of the torch beside this interpreter, or None."""
    torch = importlib.util.find_spec("torch")
    path = torch and Path(torch.origin).parent / "cuda/_memory_viz.py"
    if not path or not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("_memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def frames(item):
    return [(frame["filename"], frame["line"], frame["name"]) for frame in item.get("frames", [])]


def entry(item):
    """A free that is completed at once is so a microsecond later sometimes: tidemark does not keep that."""
    time_us = item["time_us"] if item["action"] != "free_completed" else None
    return item["action"], item.get("addr", item.get("device_free")), item["size"], time_us


def block(item):
    requested = item["requested_size"] if item["state"] != "inactive" else None
    return item["address"], item["size"], item["state"], requested, frames(item)


def segment(item):
    keys = ("device", "address", "total_size", "allocated_size", "active_size", "stream", "segment_pool_id", "is_expandable")
    return tuple(item[key] for key in keys), [block(each) for each in joined(item["blocks"])]


def joined(blocks):
    """Free blocks that are neighbours as one: PyTorch keeps some apart after it unmapped what lay between."""
    result = []
    for each in blocks:
        if result and each["state"] == result[-1]["state"] == "inactive":
            result[-1] = {**result[-1], "size": result[-1]["size"] + each["size"]}
        else:
            result.append(each)
    return result


def check_same(name, original, export):
    """The export has every entry, of a trace whose beginning is lost too, with the true address, size and time."""
    assert len(export["device_traces"]) == len(original["device_traces"])
    for old, new in zip(original["device_traces"], export["device_traces"]):
        old = [item for item in old if item["action"] != "snapshot"]
        difference = collections.Counter(map(entry, old))
        difference.subtract(collections.Counter(map(entry, new)))
        assert not any(difference.values()), (name, {key: count for key, count in difference.items() if count})
        streams = {(entry(item), item["stream"]) for item in old if item["action"] != "oom"}
        assert streams == {(entry(item), item["stream"]) for item in new if item["action"] != "oom"}, name
        for action in ("alloc", "user_defined"):
            told, again = (collections.Counter((entry(item), item.get("user_metadata", ""), *frames(item))
                                               for item in trace if item["action"] == action) for trace in (old, new))
            assert told == again, (name, told - again, again - told)
    old, new = (sorted(map(segment, snapshot["segments"])) for snapshot in (original, export))
    assert old == new, (name, [each for each in zip(old, new) if each[0] != each[1]][:1])
    kinds = {item["address"]: item["segment_type"] for item in original["segments"]}
    for item in export["segments"]:
        assert item["segment_type"] == kinds[item["address"]] if not item["is_expandable"] else "segment_type" not in item
    # Where the beginning of the trace is lost, annotations from before count from where it begins.
    start_us = min(trace[0]["time_us"] for trace in original["device_traces"] if trace)
    noted = [{**item, "time_us": max(item["time_us"], start_us)} for item in original["external_annotations"]]
    assert export["external_annotations"] == noted, (name, noted)
    settings = export["allocator_settings"]
    assert settings == {key: original["allocator_settings"][key] for key in settings}


def check_viewer(module, name, snapshot):
    """Each of its functions takes the snapshot, and finds the bytes that are there."""
    used = sum(block["size"] for item in snapshot["segments"] for block in item["blocks"])
    plain = {"format_flamegraph": lambda lines: lines}
    whole = snapshot
    if not hasattr(module, "segsum"):  # torch 1.13 knows segments only
        whole = snapshot["segments"]
        assert module.stats(whole)["total_size"].value == used, name
    for function in (module.segments, module.memory):
        lines = function(whole, **plain).splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == used, (name, function)
    if not hasattr(module, "segsum"):
        return
    assert f"segments: {len(snapshot['segments'])}\n" in module.segsum(snapshot), name
    text = module.trace(snapshot)
    count = sum(map(len, snapshot["device_traces"]))
    assert sum(int(line.split()[0]) for line in text.splitlines() if line.endswith(" entries")) == count, name
    for page in (module.trace_plot(snapshot), module.segment_plot(snapshot)):
        assert "snapshot.pickle" in page and len(page) > 4 * count, name


def main():
    tidemark, folder = sys.argv[1], Path(sys.argv[2])
    module = viewer()
    with tempfile.TemporaryDirectory() as temporary:
        for name in NAMES:
            path = folder / f"{name}.pickle.xz"
            output = Path(temporary) / "export.pickle"
            subprocess.run([tidemark, "export", path, "--to", "pytorch", "-o", output], check=True, stderr=subprocess.PIPE)
            with lzma.open(path) as packed, open(output, "rb") as plain:
                original, export = pickle.load(packed), PlainUnpickler(plain).load()
            check_same(name, original, export)
            if module:
                check_viewer(module, name, export)
    print(f"{len(NAMES)} snapshots, viewer: {module and module.__file__}")


if __name__ == "__main__":
    main()
