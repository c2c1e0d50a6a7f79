#!/usr/bin/env python3
"""Makes the seeds of pickle_fuzz and unpack_fuzz that are not in tests/data/snapshots: features that real files rarely have.

    tests/fuzz/make_pickle_seeds.py tests/fuzz/corpus
"""
import gzip
import io
import lzma
import os
import pickle
import struct
import subprocess
import sys

FRAME = {"filename": "a.py", "name": "f", "line": 1}
OTHER = {"line": 2, "name": "g", "filename": "a.py"}
STACK = [FRAME, OTHER]
ENTRY = {"action": "alloc", "addr": 1 << 40, "size": 512, "stream": 0, "time_us": 1 << 50, "frames": STACK}
SEGMENT = {"device": 0, "address": 1 << 40, "total_size": 2 << 20, "stream": 1 << 63, "segment_type": "small",
           "blocks": [{"size": 512, "state": "active_allocated", "frames": STACK}, {"size": 9, "state": "new state"}]}


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def pickles():
    history = [{"addr": 1 << 40, "real_size": 500, "frames": STACK}]
    blocks = [{"size": 512, "history": history}, {"size": 512, "history": []}]
    yield "old.pickle", pickle.dumps({"segments": [{**SEGMENT, "blocks": blocks}]}, 3)
    yield "segments_alone.pickle", pickle.dumps([SEGMENT, {**SEGMENT, "blocks": []}], 2)
    yield "twice.pickle", pickle.dumps([SEGMENT, {**SEGMENT, "address": 5}], 2)
    odd = {**ENTRY, "action": "new action", "new": {1: [2]}}
    more = {"deeper": [{}, (1, 2, 3), b"bytes", bytearray(3)]}
    yield "unknown.pickle", pickle.dumps({"device_traces": [[odd, ENTRY]], "more": more, None: 1.5}, 5)
    yield "pools.pickle", pickle.dumps({"device_traces": [[{**ENTRY, "pool_id": (0, 0)}, {**ENTRY, "pool_id": (0, 7)}],
                                                          [], [{**ENTRY, "user_metadata": "m"}]]}, 4)
    yield "same_stacks.pickle", pickle.dumps({"device_traces": [[{**ENTRY, "size": n} for n in range(5)]]}, 2)
    yield "long_stack.pickle", pickle.dumps({"device_traces": [[{**ENTRY, "frames": [FRAME, OTHER] * 510}]]}, 4)
    annotations = [{"stage": stage, "name": "step", "device": 0, "time_us": 5} for stage in ("START", "END")]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "x", "max_split_size": -1, "garbage_collection_threshold": 0.5,
                "expandable_segments": True, "roundup_power2_divisions": {"1": 4, 2: 8}}
    yield "annotations.pickle", pickle.dumps(
        {"segments": [], "external_annotations": annotations, "allocator_settings": settings}, 4)
    # Found by fuzzing: an item appended to an integer, whose bits were taken for a list's memo index.
    yield "integer_as_list.pickle", b"\x80\x04J\xfe\xff\xff\x07Na."
    # Found by fuzzing: nothing is appended to such an integer.
    yield "nothing_into_an_integer.pickle", bytes.fromhex(
        "80025d7100287d710128580600000047657669635d286571024b0058070000006164647265737371038a06752e0000005d28"
        "6571024b0058070000006164647265737371038a06752e00000001580a0000002ba80452101e631a909993000452101e631a"
        "90999300667114582e")
    # Items one by one, numbers of the memo and lengths of every size.
    frame = b"}(" + text(b"line") + b"K\x01" + text(b"name") + b"\x8c\x01fu" + b"r\x05\0\0\0"
    entry = (b"}" + text(b"size") + b"\x8b\x02\0\0\0\x01\x02s" + text(b"action") + b"\x8d\x05\0\0\0\0\0\0\0allocs" +
             text(b"frames") + b"]" + frame + b"aj\x05\0\0\0as")
    one_by_one = (b"\x80\x02}q\0" + text(b"device_traces") + b"]]" + entry + b"aas" +
                  text(b"x") + b"C\x01aB\x01\0\0\0b\x86s" +
                  text(b"y") + b"\x8e\x01\0\0\0\0\0\0\0c\x96\x01\0\0\0\0\0\0\0d\x86s.")
    assert pickle.loads(one_by_one)["device_traces"][0][0]["size"] == 0x201
    yield "one_by_one.pickle", one_by_one

def packed():
    small = pickle.dumps({"device_traces": [[ENTRY]]}, 4)
    half = len(small) // 2
    named = io.BytesIO()
    with gzip.GzipFile("name", "wb", mtime=0, fileobj=named) as file:
        file.write(small)
    yield "named.gz", named.getvalue()
    yield "two_parts.gz", gzip.compress(small[:half], mtime=0) + gzip.compress(small[half:], mtime=0)
    yield "two_parts.xz", lzma.compress(small[:half]) + lzma.compress(small[half:], check=lzma.CHECK_CRC32)
    yield "zeros.xz", lzma.compress(bytes(100_000))
    parts = [subprocess.run(["zstd", "-c", *options], input=part, stdout=subprocess.PIPE, check=True).stdout
             for part, options in ((small[:half], ["--no-check"]), (small[half:], []))]
    yield "two_parts.zst", b"".join(parts)
    # Found by fuzzing: a damaged frame that looks like a skippable one from its seventh byte on.
    yield "two_frames_in_one.zst", b"\x28\xb5\x2f\xfd\x74\x69\x50\x2a\x4d\x18\x03\0\0\0abc"
    # Found by fuzzing: the frame states 64,384 bytes, and its only block is empty.
    yield "smaller_than_stated.zst", b"\x28\xb5\x2f\xfd\x40\x57\x80\xfa\x01\0\0"
    yield "skippable.zst", b"".join(parts[:1]) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + parts[1]


def main():
    for folder, files in (("pickle", [*pickles(), *packed()]), ("unpack", packed())):
        os.makedirs(os.path.join(sys.argv[1], folder), exist_ok=True)
        for name, data in files:
            with open(os.path.join(sys.argv[1], folder, name), "wb") as file:
                file.write(data)


if __name__ == "__main__":
    main()
