#!/usr/bin/env python3
"""Snapshots that are valid but unlike those of today's PyTorch: older and newer ones, other picklers' habits.

    pickle_unusual.py PICKLE_DUMP
"""
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None
FRAME = {"name": "f", "filename": "a.py", "line": 1}
OTHER = {"name": "g", "filename": "b.py", "line": 2}


def entry(**more):
    return {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 7, **more}


def trace(*entries):
    return {"segments": [], "device_traces": [list(entries)]}


def shuffled(value, order):
    """The same with the keys of every dict in another order."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    return value


def short(text):
    return b"\x8c" + bytes([len(text)]) + text.encode()


class Unusual(unittest.TestCase):
    def dump(self, data):
        """Lines by what they say; an entry's, a segment's or a block's last value is its list of frames."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "input.pickle")
            with open(path, "wb") as file:
                file.write(data if isinstance(data, bytes) else pickle.dumps(data))
            text = subprocess.run([PROGRAM, path], stdout=subprocess.PIPE, text=True, check=True).stdout
        lines, stacks = {}, []
        for kind, *values in map(json.loads, text.splitlines()):
            if kind == "stack":
                stacks.append((values[0], tuple(values[1:])))
                continue
            if kind in ("entry", "segment", "block"):
                values[-1] = self.frames(stacks, values[-1])
            lines.setdefault(kind, []).append(values)
        return lines

    def frames(self, stacks, stack):
        result = []
        while stack not in (None, -1):
            stack, frame = stacks[stack]
            result.append(frame)
        return result

    def test_any_order_of_keys(self):
        block = {"address": 4096, "size": 512, "requested_size": 500, "state": "inactive", "frames": [OTHER]}
        out_of_memory = {"action": "oom", "device_free": 5, "size": 9, "stream": 0, "time_us": 8, "frames": [FRAME]}
        snapshot = trace(entry(frames=[FRAME, OTHER], user_metadata="m"), out_of_memory)
        snapshot["segments"] = [{"device": 1, "address": 4096, "total_size": 512, "blocks": [block], "stream": 3}]
        expected = self.dump(snapshot)
        stack = [("f", "a.py", 1), ("g", "b.py", 2)]
        self.assertEqual(expected["entry"], [[0, "alloc", 4096, 512, 0, 7, [0, 0], stack],
                                             [0, "oom", 5, 9, 0, 8, [0, 0], stack[:1]]])
        self.assertEqual(expected["block"], [[4096, 512, 500, "inactive", [("g", "b.py", 2)]]])
        order = random.Random(4)
        for _ in range(20):
            self.assertEqual(self.dump(shuffled(snapshot, order)), expected)

    def test_items_in_several_batches(self):
        """Each key set by its own opcode, the telling one last."""
        def dict_of(**values):
            return b"}" + b"".join(short(key) + value + b"s" for key, value in values.items())

        frame = dict_of(line=b"K\x01", name=short("f"), filename=short("a.py"))
        made = dict_of(addr=b"M\x00\x10", size=b"M\x00\x02", stream=b"K\x03", time_us=b"K\x07",
                       frames=b"](" + frame + b"e", action=short("alloc"))
        data = b"\x80\x04}(" + short("device_traces") + b"](](" + made + b"eeu."
        self.assertEqual(pickle.loads(data)["device_traces"][0][0]["frames"], [FRAME])  # what Python makes of it
        self.assertEqual(self.dump(data)["entry"], [[0, "alloc", 4096, 512, 3, 7, [0, 0], [("f", "a.py", 1)]]])

    def test_blocks_of_torch_2_0(self):
        """No addresses, no requested sizes; who had a block is in its history, the latest first."""
        history = [{"addr": 8192, "real_size": real_size, "frames": [frame]}
                   for real_size, frame in ((1000, FRAME), (3, OTHER))]
        blocks = [{"size": 1024, "state": "active_allocated", "history": history},
                  {"size": 512, "state": "inactive"},
                  {"size": 256, "state": "active_awaiting_free", "history": []}]
        segment = {"device": 0, "address": 8192, "total_size": 1792, "segment_type": "small", "blocks": blocks}
        expected = [[8192, 1024, 1000, "active_allocated", [("f", "a.py", 1)]],
                    [9216, 512, 512, "inactive", []],
                    [9728, 256, 256, "active_pending_free", []]]
        self.assertEqual(self.dump({"segments": [segment]})["block"], expected)
        self.assertEqual(self.dump([segment])["block"], expected, "torch.cuda.memory_snapshot(): the segments alone")

    def test_unknown_things_are_counted(self):
        snapshot = trace(entry(new=1), entry(new=[{}], action="new_action"), entry(action="new_action"),
                         {**entry(), 5: 6, None: 7}, entry(addr="text"))
        snapshot["more"] = {"deep": [[], {}, (1, 2.5), b"bytes"]}
        snapshot["segments"] = [{"total_size": 1, "new": None, "blocks": [{"size": 1, "state": "odd", "new": 0}]}]
        unknown_keys, unknown_actions, invalid_fields = self.dump(snapshot)["unknown"][0]
        self.assertEqual(unknown_keys, {"snapshot.more": 1, "trace.new": 2, "trace.(no text)": 2,
                                        "segment.new": 1, "block.new": 1})
        self.assertEqual(unknown_actions, {"new_action": 2})
        self.assertEqual(invalid_fields, {"device_traces[0][4].addr": 1, "segments[0].blocks[0].state": 1})

    def test_invalid_fields_are_counted_with_the_first_place(self):
        snapshot = trace(entry(), entry(time_us="then"), entry(addr=None), entry(time_us="now"), 5)
        snapshot["device_traces"] += [[], 7, [entry(frames=[{**FRAME, "line": "one"}])]]
        snapshot["segments"] = [{"total_size": 512, "address": 0, "blocks": [{"size": 1, "state": "inactive"}]},
                                {"total_size": 512, "address": 512,
                                 "blocks": [{"size": 1, "state": "inactive"}, {"size": -1, "state": 5}]},
                                {"total_size": "large", "address": 1024, "device": 0.5}, 5]
        self.assertEqual(self.dump(snapshot)["unknown"][0], [{}, {}, {
            "device_traces[0][1].time_us": 2, "device_traces[0][2].addr": 1, "device_traces[0][4]": 2,
            "device_traces[3][0].frames.line": 1, "segments[1].blocks[1].size": 1, "segments[1].blocks[1].state": 1,
            "segments[2].total_size": 1, "segments[2].device": 1, "segments[3]": 1}])

    def test_what_cannot_be_read_is_unknown_and_not_zero(self):
        lines = self.dump(trace(entry(time_us="then"), entry(), entry(time_us=None), entry(time_us=9), entry(addr="1"),
                                {**entry(device_free="2"), "action": "oom"}))
        self.assertEqual([line[5] for line in lines["entry"]], [7, 7, 7, 9, 7, 7], "that of the entry before, or after")
        self.assertEqual([line[1] for line in lines["entry"]], ["alloc"] * 4 + ["unknown", "oom"])

    def test_numbers_of_64_bits(self):
        """PyTorch's own pickler writes what has the top bit as a negative number."""
        top = 1 << 63
        lines = self.dump(trace(entry(addr=top + 5, stream=top, pool_id=(0, 3)), entry(addr=5 - top, time_us=-8)))
        self.assertEqual([line[2] for line in lines["entry"]], [top + 5, top + 5])
        self.assertEqual([line[4] for line in lines["entry"]], [top, 0])
        self.assertEqual([line[5] for line in lines["entry"]], [7, -8])
        self.assertEqual([line[6] for line in lines["entry"]], [[0, 3], [0, 0]])

    def test_long_stacks(self):
        """Python's picklers write lists in pieces of 1000."""
        frames = [{**FRAME, "line": n} for n in range(3500)]
        expected = [("f", "a.py", n) for n in range(3500)]
        for protocol in (2, 4):
            data = pickle.dumps(trace(entry(frames=frames), entry(frames=frames), entry(frames=[FRAME])), protocol)
            stacks = [line[-1] for line in self.dump(data)["entry"]]
            self.assertEqual(stacks, [expected, expected, [("f", "a.py", 1)]])

    def test_long_stack_in_single_pieces(self):
        """Takes time for its length, not for its square."""
        count = 50_000
        numbers = [random.Random(n).randrange(2) for n in range(count)]
        frames = b"".join((b"h\x00a", b"h\x01a")[n] for n in numbers)
        pair = b"".join(b"}(" + short("line") + bytes([0x4B, n]) + b"uq" + bytes([n]) for n in (0, 1))
        data = (b"\x80\x04](" + pair +
                b"}(" + short("action") + short("alloc") + short("frames") + b"]" + frames + b"ue.")
        self.assertEqual(len(pickle.loads(data)[2]["frames"]), count)
        data = b"\x80\x04}(" + short("device_traces") + b"]" + data[2:-1] + b"a" + short("segments") + b"]u."
        before = time.monotonic()
        lines = self.dump(data)
        self.assertLess(time.monotonic() - before, 20)
        self.assertEqual([frame[2] for frame in lines["entry"][0][-1]], numbers)

    def test_a_list_of_frames_that_is_not_only_frames(self):
        lines = self.dump(trace(entry(frames=[FRAME, 5]), entry(frames=[5]), entry(frames=None), entry(frames=[])))
        self.assertEqual([line[-1] for line in lines["entry"]], [[], [], [], []])
        self.assertEqual(lines["unknown"][0][2], {"device_traces[0][0].frames": 2})

    def test_many_devices(self):
        """More than there are columns for; two have no entries."""
        traces = [[entry(size=100 * n + k, user_metadata=f"{n} {k}") for k in range(3)] for n in range(300)]
        traces[5] = traces[299] = []
        lines = self.dump({"segments": [], "device_traces": traces})
        expected = [(n, 100 * n + k) for n in range(299) for k in range(3) if n != 5]
        self.assertEqual([(line[0], line[3]) for line in lines["entry"]], expected)
        self.assertEqual(lines["user_metadata"], [[n, size % 100, f"{n} {size % 100}"] for n, size in expected])

    def test_texts_of_every_length(self):
        names = ["", "é", "x" * 255, "y" * 256, "z" * 70_000, "\ud800", "N/A"]
        for protocol in (2, 4):
            data = pickle.dumps(trace(*(entry(frames=[{**FRAME, "name": name}]) for name in names)), protocol)
            dumped = [line[-1][0][0] for line in self.dump(data)["entry"]]
            self.assertEqual(dumped[:5] + dumped[6:], names[:5] + names[6:])

    def test_frames_of_protocol_4_do_not_matter(self):
        data = pickle.dumps(trace(entry()), 4)
        length = struct.pack("<Q", len(data) - 11)
        self.assertEqual(data[2:11], b"\x95" + length)
        self.assertEqual(self.dump(data[:2] + data[11:]), self.dump(data))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
