#!/usr/bin/env python3
"""Makes the seeds of trace_reader_fuzz from recordings: each unchanged, and once more without compression, because mutations of a compressed frame
fail in the decompressor.

    tests/fuzz/make_trace_seeds.py tests/fuzz/corpus/trace_reader tests/compat/*.tide
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compat"))
from read_tide import crc32c, decompress  # noqa: E402


def without_compression(recording):
    out, at = recording[:16], 16
    while at < len(recording):
        kind, version, flags, stored, raw = struct.unpack_from("<BBHII", recording, at)
        payload = recording[at + 16:at + 16 + stored]
        at += 16 + stored
        if flags & 1:
            payload = decompress(payload, raw)
        header = struct.pack("<BBHII", kind, version, flags & ~1, len(payload), len(payload))
        out += header + struct.pack("<I", crc32c(header + payload)) + payload
    return out


def main():
    folder, *recordings = sys.argv[1:]
    for path in recordings:
        with open(path, "rb") as file:
            recording = file.read()
        name = os.path.splitext(os.path.basename(path))[0]
        for suffix, content in (("", recording), ("-plain", without_compression(recording))):
            with open(os.path.join(folder, name + suffix + ".tide"), "wb") as file:
                file.write(content)


main()
