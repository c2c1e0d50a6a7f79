#!/usr/bin/env python3
"""Hostile, damaged and foreign files: the snapshot reader refuses them, runs nothing and takes little memory.

    pickle_refused.py PICKLE_DUMP [--sanitized]    a sanitizer takes memory of its own, so there is no limit then
"""
import gzip
import io
import lzma
import os
import pickle
import pickletools
import resource
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM = None
SANITIZED = False
MEMORY_MIB = 64  # what the program may take for small files, whatever they say


class Refused(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "input.pickle")
        self.marker = os.path.join(folder.name, "was_run")

    def refused(self, data, *texts, memory_mib=MEMORY_MIB):
        with open(self.path, "wb") as file:
            file.write(data)

        def limit():
            if not SANITIZED:
                resource.setrlimit(resource.RLIMIT_DATA, (memory_mib << 20, memory_mib << 20))

        done = subprocess.run([PROGRAM, self.path], capture_output=True, text=True, preexec_fn=limit, check=False)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith(self.path), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertFalse(os.path.exists(self.marker), "it was run")

    def offset_of(self, data, *names):
        return next(f"offset {at}:" for opcode, _, at in pickletools.genops(data) if opcode.name in names)

    # -- code ----------------------------------------------------------------------------------------------------------
    def test_reduce(self):
        marker = self.marker

        class Hostile:
            def __reduce__(self):
                return os.system, (f"touch {marker}",)

        for protocol in (2, 3, 4, 5):
            for place in ([], ["segments"], ["device_traces"], ["other"]):
                with self.subTest(protocol=protocol, place=place):
                    data = pickle.dumps({place[0]: [Hostile()]} if place else Hostile(), protocol)
                    at = self.offset_of(data, "GLOBAL", "STACK_GLOBAL")
                    self.refused(data, "refused", at, "GLOBAL of posix.system", "nothing was run")

    def test_every_opcode_that_runs_code(self):
        command = f"touch {self.marker}".encode()
        argument = b"X" + struct.pack("<I", len(command)) + command
        for name, body in {
            "GLOBAL": b"cos\nsystem\n" + argument + b"\x85R.",
            "STACK_GLOBAL": b"\x8c\x02os\x8c\x06system\x93" + argument + b"\x85R.",
            "INST": b"(" + argument + b"ios\nsystem\n.",
            "OBJ": b"(" + argument + b"o.",
            "REDUCE": b"NN\x85R.",
            "BUILD": b"}}b.",
            "NEWOBJ": b"N)\x81.",
            "NEWOBJ_EX": b"N)}\x92.",
            "PERSID": b"Pposix\n.",
            "BINPERSID": b"NQ.",
            "EXT1": b"\x82\x01.",
            "EXT2": b"\x83\x01\x00.",
            "EXT4": b"\x84\x01\x00\x00\x00.",
        }.items():
            with self.subTest(name):
                data = b"\x80\x04" + body
                self.refused(data, f"refused: {name}", self.offset_of(data, name), "would run code")

    def test_other_opcodes(self):
        for name, body in {"EMPTY_SET": b"\x8f", "FROZENSET": b"(\x91", "NEXT_BUFFER": b"\x97", "POP": b"N0",
                           "DUP": b"N2", "READONLY_BUFFER": b"N\x98", "BINSTRING": b"T\x01\0\0\0a"}.items():
            with self.subTest(name):
                data = b"\x80\x05" + body + b"."
                self.refused(data, "refused", name, self.offset_of(data, name))

    def test_names_are_printable(self):
        self.refused(b"\x80\x02c\x1b[31m\nsys\xfftem\n.", "?[31m.sys?tem")
        self.refused(b"\x80\x02c" + b"m" * 1000, "refused: GLOBAL")
        self.refused(b"\x80\x02cos", "refused: GLOBAL")

    # -- structure -----------------------------------------------------------------------------------------------------
    def test_objects_that_contain_themselves(self):
        itself = []
        itself.append(itself)
        mapping = {"segments": []}
        mapping["segments"].append(mapping)
        entry = {"action": "alloc"}
        entry["frames"] = [entry]
        longer = list(range(2000))
        longer.append(longer)
        for value in (itself, mapping, entry, longer):
            for protocol in (2, 4):
                self.refused(pickle.dumps(value, protocol), "offset", "contains itself")

    def test_marks_and_stack(self):
        for body in (b".", b"(.", b"NN.", b"e.", b"u.", b"(e.", b"(u.", b"t.", b"a.", b"Na.", b"s.", b"NNs.", b"\x85.",
                     b"N\x86.", b"NN\x87.", b"](a.", b"]N(a.", b"\x94.", b"(\x94.", b"q\x00.", b"}(Nu.", b"N(Ne.",
                     b"](N}(u.", b"N)s.", b"KaK\x01e.", b"K\x07Na.",
                     b"J\xfe\xff\xff\x07Na."):
            with self.subTest(body):
                self.refused(b"\x80\x04" + body, "offset")

    def test_memo(self):
        self.refused(b"\x80\x04h\x05.", "offset 2:", "number 5 of the memo is not set")
        self.refused(b"\x80\x04j\xff\xff\xff\xff.", "offset 2:", "not set")
        self.refused(b"\x80\x02Nr\xff\xff\xff\x7f.", "offset 3:", "memo")
        self.refused(b"\x80\x02Nr\x00\x00\x01\x00.", "offset 3:", "memo")
        self.refused(b"\x80\x02Nq\x00Nq\x00.", "offset 6:", "set twice")
        self.refused(b"\x80\x02]q\x00q\x01.", "offset 5:", "twice")

    def test_lengths_that_lie(self):
        for body in (b"X\xff\xff\xff\x7f", b"\x8d" + struct.pack("<Q", 1 << 62), b"\x8d" + b"\xff" * 8,
                     b"X\x00\x00\xff\x00abc", b"\x8cZab", b"B\xff\xff\xff\xff", b"\x8e" + b"\xff" * 8,
                     b"\x96" + struct.pack("<Q", 1 << 40), b"\x8b\xff\xff\xff\x7f", b"\x8b\xff\xff\xff\xff",
                     b"\x8a\xff", b"\x95" + b"\xff" * 8):
            with self.subTest(body):
                self.refused(b"\x80\x04" + body, "offset")

    def test_integers(self):
        self.refused(pickle.dumps([1 << 64]), "offset", "64 bits")
        self.refused(pickle.dumps([-(1 << 63) - 1]), "offset", "64 bits")
        self.refused(pickle.dumps([1 << 3000]), "offset", "64 bits")

    def test_deep_nesting(self):
        depth = 1_000_000
        for body in (b"]" * depth, b"(" * depth, b"](" * depth + b"e" * depth + b".",
                     b"}(N" * depth + b"Nu" * depth + b".", b"N" + b"\x85" * depth + b".", b"\x85" * depth):
            self.refused(b"\x80\x04" + body, memory_mib=512)

    def test_many_from_few(self):
        """Lists of lists by reference: 10^9 items in a few hundred bytes, and 10^9 blocks in a few kilobytes."""
        laughs = b"\x80\x02]q\x00(K\x01e"
        for level in range(9):
            laughs += b"]q" + bytes([level + 1]) + b"(" + (b"h" + bytes([level])) * 10 + b"e"
        self.refused(laughs + b".")
        blocks = [{"size": 512, "state": "inactive"}] * 1000
        segment = {"total_size": 1 << 20, "address": 0, "blocks": blocks}
        self.refused(pickle.dumps({"segments": [segment] * 1000}), "twice")
        self.refused(pickle.dumps({"segments": [{**segment, "address": n} for n in range(1000)]}), "twice")
        trace = [{"action": "alloc", "addr": n, "size": 1} for n in range(1000)]
        self.refused(pickle.dumps({"segments": [], "device_traces": [trace] * 1000}), "twice")

    def test_too_many_streams(self):
        trace = [{"action": "alloc", "addr": n, "size": 1, "stream": n} for n in range(70_000)]
        self.refused(pickle.dumps({"segments": [], "device_traces": [trace]}), "offset", "streams")

    # -- packed files --------------------------------------------------------------------------------------------------
    def test_packed_and_damaged(self):
        data = pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": n} for n in range(999)]]})
        for packing, packed in (("gzip", gzip.compress(data)), ("xz", lzma.compress(data))):
            half = len(packed) // 2
            self.refused(packed[:half], f"the packed file ({packing}) is cut off at offset {half}")
            self.refused(packed[:-8] + bytes(8), f"unpacking ({packing}) failed at offset", "of the packed file")
            self.refused(gzip.compress(packed), "(unpacked gzip)", "unknown bytes")
        stored = gzip.compress(data, 0)
        self.assertEqual(stored.count(b"alloc"), 1)
        self.refused(stored.replace(b"alloc", b"ALLOC"), "unpacking (gzip) failed", "incorrect data check")
        # A frame of 20841 bytes whose first block has 199077: and from its seventh byte on, a frame of three bytes.
        self.refused(b"\x28\xb5\x2f\xfd\x74\x69\x50\x2a\x4d\x18\x03\0\0\0abc", "unpacking (zstd) failed at offset")

    def test_little_that_unpacks_to_much(self):
        for body in (b"\x8e" + struct.pack("<Q", 1 << 40), b"X\xff\xff\xff\x00", b"B\xff\xff\xff\x07"):
            much = gzip.compress(b"\x80\x04" + body + bytes(64 << 20), 1)
            self.assertLess(len(much), 1 << 20)
            self.refused(much, "(unpacked gzip)", "offset")

    # -- other files ---------------------------------------------------------------------------------------------------
    def test_other_files(self):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("archive/data.pkl", b"")
        self.refused(b"", "empty")
        self.refused(archive.getvalue(), "zip", "torch.save", "pickle")
        self.refused(b'{"segments": []}', "JSON")
        self.refused(b"hello, world\n", "text")
        self.refused(bytes(range(256)), "unknown bytes")
        self.refused(b"\x89TIDE\r\n\x1a" + bytes(8), "recording")
        self.refused(pickle.dumps({"segments": []}, 0), "protocol")
        self.refused(pickle.dumps({"segments": []}, 1), "protocol")
        self.refused(b"\x80\x06N.", "protocol 6")
        self.refused(b"\x80\x02I1\n.", "protocol 0")
        self.refused(b"\x80\x02\xfe.", "0xFE")
        for value in ([], {}, None, 5, "text", [1, 2], {"a": 1}, [[]], [{}], [{"a": 1}], ({"segments": []},),
                      {"segments": 7, "device_traces": "x"}, {"segments": [{}]}, {"device_traces": [7]},
                      {"segments": [], "device_traces": [[{}]]}, {"segments": None, "device_traces": {}}):
            self.refused(pickle.dumps(value), "not a PyTorch memory snapshot", "`segments` and `device_traces`")


if __name__ == "__main__":
    if "--sanitized" in sys.argv:
        SANITIZED = True
        sys.argv.remove("--sanitized")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
