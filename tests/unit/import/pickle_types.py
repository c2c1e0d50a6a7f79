#!/usr/bin/env python3
"""Every field of a snapshot with values of other types: a warning that names it, or an error, but never "complete".

    pickle_types.py TIDEMARK
"""
import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/snapshots"))
import make_small  # noqa: E402

TIDEMARK = None
VALUES = [None, True, -3, 7, 1 << 63, 1.5, "x", b"x", (1, 2), (1, 2, 3), [], [5], [[5]], {}, {"a": 1}]

NUMBER, ADDRESS, FLAG, TEXT, PAIR, RATIO = "number", "address", "flag", "text", "pair", "ratio"
LIST, DICT, FRAMES, CHOICE, DEVICE, ANY_NUMBER, EMPTY = (
    "list", "dict", "frames", "choice", "device", "any number", "empty")
TYPES = {  # what PyTorch writes: torch/csrc/cuda/Module.cpp, memory_snapshot.cpp
    "segments": LIST, "device_traces": LIST, "external_annotations": FRAMES, "allocator_settings": DICT,
    "tidemark_devices": CHOICE,
    "action": TEXT, "addr": ADDRESS, "device_free": ADDRESS, "size": NUMBER, "stream": ADDRESS, "time_us": ANY_NUMBER,
    "pool_id": PAIR, "frames": FRAMES, "compile_context": TEXT, "user_metadata": TEXT, "internal_metadata": TEXT,
    "filename": TEXT, "line": NUMBER, "name": TEXT,
    "address": ADDRESS, "requested_size": NUMBER, "state": CHOICE, "history": FRAMES, "real_size": NUMBER,
    "device": DEVICE, "total_size": NUMBER, "allocated_size": NUMBER, "active_size": NUMBER, "segment_type": CHOICE,
    "segment_pool_id": PAIR, "is_expandable": FLAG, "blocks": LIST,
    "stage": CHOICE,
    "PYTORCH_CUDA_ALLOC_CONF": TEXT, "PYTORCH_ALLOC_CONF": TEXT, "max_split_size": ANY_NUMBER,
    "garbage_collection_threshold": RATIO, "expandable_segments": FLAG, "roundup_power2_divisions": EMPTY,
    "1": NUMBER,  # of roundup_power2_divisions
}


def is_of(kind, value):
    is_int = type(value) is int
    return {NUMBER: is_int and value >= 0, ADDRESS: is_int, ANY_NUMBER: is_int, DEVICE: is_int and -1 <= value < 1 << 31,
            FLAG: type(value) is bool, TEXT: isinstance(value, str), RATIO: is_int or isinstance(value, float),
            PAIR: isinstance(value, tuple) and len(value) == 2, LIST: value == [], CHOICE: False, EMPTY: value == {},
            DICT: isinstance(value, dict) or value is None, FRAMES: value == [] or value is None}[kind]


def small():
    """What make_small writes, and the fields of older and newer PyTorch."""
    snapshot = copy.deepcopy(make_small.snapshot())
    snapshot["tidemark_devices"] = ""
    snapshot["allocator_settings"]["PYTORCH_ALLOC_CONF"] = "max_split_size_mb:64"
    for trace in snapshot["device_traces"]:
        for entry in trace:
            entry.update(pool_id=(0, 0), internal_metadata="")
    block = snapshot["segments"][0]["blocks"][2]
    block["history"] = [{"addr": block["address"], "real_size": 0, "frames": []}]
    return snapshot


def places(value, key=None):
    """(dict, key) of the first of each field in each kind of dict."""
    found, seen = [], set()

    def walk(value, path):
        if isinstance(value, dict):
            for key, item in value.items():
                if (path, key) not in seen and key in TYPES:
                    seen.add((path, key))
                    found.append((path, value, key))
                walk(item, path + (key,))
        elif isinstance(value, list):
            for item in value:
                walk(item, path)
    walk(value, ())
    return found


def mutants():
    """(path of the field, value, snapshot with it): each field with every value that is not of its type."""
    for number in range(len(places(small()))):
        for value in VALUES:
            snapshot = small()
            path, holder, key = places(snapshot)[number]
            if is_of(TYPES[key], value) or path[-1:] + (key,) == ("history", "addr"):  # that one is not read
                continue
            holder[key] = value
            yield path + (key,), value, snapshot


class Types(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, snapshot):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)
        return path

    def summary(self, paths):
        return subprocess.run([TIDEMARK, "summary", "--format", "json", *paths], capture_output=True, text=True,
                              check=False)

    def check(self, field, quality):
        self.assertFalse(quality["complete"])
        invalid = [issue for issue in quality["issues"] if issue["id"] == "invalid_fields"]
        self.assertEqual(len(invalid), 1)
        names = invalid[0]["params"]["names"]
        named = "roundup_power2_divisions" if field[-1] == "1" else "history" if "history" in field else field[-1]
        self.assertTrue(any(named in name for name in names), names)
        self.assertEqual(invalid[0]["count"], sum(names.values()))

    def test_the_snapshot_itself_is_complete(self):
        snapshot = small()
        done = self.summary([self.file("small.pickle", snapshot)])
        self.assertTrue(json.loads(done.stdout)["data_quality"]["complete"])
        self.assertEqual({key for _, _, key in places(snapshot)}, set(TYPES))

    def test_no_value_of_another_type_is_complete(self):
        """In one run; what may be an error, which ends it, alone."""
        all_mutants = list(mutants())
        self.assertGreater(len(all_mutants), 500)
        together = []
        for number, (field, value, snapshot) in enumerate(all_mutants):
            path = self.file(f"{number}.pickle", snapshot)
            if field[-1] not in ("segments", "device_traces"):
                together.append((field, value, path))
                continue
            with self.subTest(field=field, value=value):
                done = self.summary([path])
                self.assertIn(done.returncode, (0, 2))
                if done.returncode == 0:
                    self.check(field, json.loads(done.stdout)["data_quality"])
                else:
                    self.assertIn(path, done.stderr)
        done = self.summary([path for _, _, path in together])
        self.assertEqual(done.returncode, 0, done.stderr)
        for (field, value, path), recording in zip(together, json.loads(done.stdout)["recordings"], strict=True):
            with self.subTest(field=field, value=value):
                self.assertEqual(recording["file"], path)
                self.check(field, recording["data_quality"])


if __name__ == "__main__":
    TIDEMARK = os.path.abspath(sys.argv.pop(1))
    unittest.main()
