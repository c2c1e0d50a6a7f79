#!/usr/bin/env python3
"""Reads a recording using only docs/format.md: prints it as JSON. Checks that page and the C++ reader.

Standard library only; zstd through ctypes. Not fast, and makes only the checks that the page requires.
"""

import ctypes
import ctypes.util
import itertools
import json
import struct
import sys

MAX_PAYLOAD = 16 << 20
KINDS = ["allocate", "free", "free", "out_of_memory", "pause", "resume"]
MASK = (1 << 64) - 1


def crc32c_table():
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        yield n


CRC_TABLE = list(crc32c_table())


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = CRC_TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def decompress(data, raw_length):
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(raw_length + 1)
    size = zstd.ZSTD_decompress(out, ctypes.c_size_t(raw_length), data, ctypes.c_size_t(len(data)))
    if size != raw_length:
        raise ValueError("a frame does not decompress to its raw length")
    return out.raw[:raw_length]


class Bytes:
    """A position in a record's body or a column."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        if self.at > len(self.data):
            raise ValueError("ends too early")
        return self.data[self.at - count : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self):
        return unzigzag(self.varint())

    def text(self):
        return self.take(self.varint()).decode("utf-8", "replace")

    def id(self):
        code = self.varint()
        return None if code == 0 else code - 1

    def done(self):
        return self.at >= len(self.data)


def unzigzag(code):
    return (code >> 1) ^ -(code & 1)


def table_index(value, bits):
    return ((value * 0x9E3779B97F4A7C15) & MASK) >> (64 - bits)


def ids(body, count):
    return [body.id() for _ in range(count)]


def host_process(records):
    body = Bytes(records.take(records.varint()))
    fields = [body.zigzag(), body.zigzag(), body.varint(), body.varint()]
    return fields + ids(body, 11) + [body.text()]


class Recording:
    def __init__(self):
        self.process, self.end, self.skipped, self.problem = None, None, 0, None
        self.strings, self.locations, self.stacks, self.threads, self.modules = [], [], [], [], []
        self.losses, self.marks, self.events, self.samples = [], [], [], []
        self.totals_frames, self.states = [], []
        self.nn_modules, self.nn_module_names, self.tensors, self.autograd_nodes = [], [], [], []
        # State of the events frames.
        self.time, self.thread, self.device, self.freed_slot, self.allocated_at = 0, None, (0, 0), 0, 0
        self.sequence, self.node_sequence = 0, 0
        self.slots, self.freed_at, self.recent, self.totals = {}, [0] * 1024, [0] * 4096, {}

    def read(self, data):
        if data[:8] != b"\x89TIDE\r\n\x1a" or struct.unpack_from("<I", data, 12)[0] != crc32c(data[:12]):
            raise ValueError("not a recording")
        if struct.unpack_from("<H", data, 10)[0] > 1:
            raise ValueError("needs a newer reader")
        at = 16
        while at < len(data):
            header = data[at : at + 16]
            if len(header) < 16:
                self.problem = at
                return
            kind, version, flags, stored, raw, checksum = struct.unpack("<BBHIII", header)
            payload = data[at + 16 : at + 16 + stored]
            if max(stored, raw) > MAX_PAYLOAD or len(payload) < stored or crc32c(header[:12] + payload) != checksum:
                self.problem = at
                return
            at += 16 + stored
            if kind not in READERS or version != 1 or flags > 1:
                self.skipped += 1
                continue
            if flags & 1:
                payload = decompress(payload, raw)
            READERS[kind](self, payload)

    def read_definitions(self, payload):
        records = Bytes(payload)
        while not records.done():
            kind = records.varint()
            body = Bytes(records.take(records.varint()))
            if kind == 1:
                numbers = [body.zigzag() for _ in range(5)]
                self.process = numbers + [body.varint()] + [body.text() for _ in range(6)]
            elif kind == 2:
                self.strings.append(body.text())
            elif kind == 3:
                location = body.varint()
                if location == 0:
                    calls = ["python", body.id(), body.id(), body.varint()]
                    self.locations.append(calls if body.done() else [*calls, body.id()])
                elif location == 1:
                    self.locations.append(["native", body.id(), body.varint()])
                else:
                    self.locations.append(["python", None, None, 0])
            elif kind == 4:
                distance = body.varint()
                self.stacks.append([len(self.stacks) - distance if distance else None, body.id()])
            elif kind == 5:
                self.threads.append([body.zigzag(), body.text()])
            elif kind == 6:
                self.modules.append([body.id(), body.varint(), body.text()])
            elif kind == 7:
                self.losses.append([body.varint(), body.varint(), body.text()])
            elif kind == 9:
                self.marks.append([body.varint(), body.varint(), body.id(), body.id()])
            elif kind == 10:
                self.nn_modules.append([body.varint()])
            elif kind == 11:
                self.nn_module_names.append([body.id() for _ in range(4)])
            elif kind == 12:
                tensor = [
                    body.varint(),
                    body.zigzag(),
                    body.zigzag(),
                    *(body.varint() for _ in range(5)),
                    *(body.id() for _ in range(4)),
                ]
                self.tensors.append([*tensor, [body.varint() for _ in range(body.varint())]])
            elif kind == 13:
                self.autograd_nodes.append([body.id(), body.id()])
            elif kind == 8:
                self.end = [body.varint(), bool(body.varint() & 1)]
            else:
                self.skipped += 1

    def read_samples(self, payload):
        records = Bytes(payload)
        while not records.done():
            kind = records.varint()
            body = Bytes(records.take(records.varint()))
            if kind == 1:
                fields = [body.varint()] + [body.id() for _ in range(3)] + [body.text() for _ in range(4)]
            elif kind == 2:
                fields = [body.varint(), body.varint()] + [body.id() for _ in range(5)]
                fields[5] = None if fields[5] is None else unzigzag(fields[5])
            elif kind == 3:
                fields = [body.varint(), body.varint()]
                processes = range(body.varint())
                fields.append([[body.zigzag(), body.varint(), body.id(), body.text()] for _ in processes])
            elif kind == 4:
                fields = [body.varint()] + [body.id() for _ in range(8)]
                if not body.done():
                    fields += [body.id() for _ in range(11)]
            elif kind == 5:
                fields = [body.varint(), body.varint()]
            elif kind == 6:
                fields = [body.varint(), ids(body, 8), ids(body, 5), ids(body, 8), ids(body, 2)]
                fields += [[host_process(body) for _ in range(body.varint())], body.varint(), ids(body, 7)]
            elif kind == 7:
                fields = [body.varint(), host_process(body), body.varint(), body.varint(), ids(body, 2)]
            else:
                self.skipped += 1
                continue
            self.samples.append([kind, fields])

    def read_events(self, payload):
        head = Bytes(payload)
        count = head.varint()
        lengths = [head.varint() for _ in range(head.varint())]
        columns = [Bytes(head.take(length)) for length in lengths]
        for _ in range(count):
            event = self.read_event(*columns[:10])
            if event["kind"] in ("allocate", "out_of_memory"):
                self.read_attribution(event, *columns[10:13])
            self.events.append(event)
        if not all(column.done() for column in columns[:13]) or not head.done():
            raise ValueError("a column is not used up")

    def read_event(self, tags, low, high, threads, devices, addresses, sizes, stacks, slots, totals):
        tag = tags.take(1)[0]
        kind = tag & 7
        self.time = (self.time + unzigzag(low.take(1)[0] + 256 * high.varint())) & MASK
        if tag & 8:
            self.thread = threads.id()
        event = {"kind": KINDS[kind], "time_ns": self.time, "thread": self.thread}
        if kind >= 4:
            return event
        if kind != 1:
            if tag & 16:
                self.device = struct.unpack("bb", devices.take(2))
            device = self.device
        size = sizes.varint() if kind in (0, 3) else None
        slot = address = None
        grown = 0
        if kind == 0:
            code = addresses.varint()
            if code == 0:
                address = self.freed_at[table_index(size, 10)]
            elif code == 1:
                address = (self.allocated_at + addresses.zigzag()) & MASK
            else:
                address = self.recent[code - 2]
            self.recent[table_index(address, 12)] = self.allocated_at = address
            slot = next(n for n in range(len(self.slots) + 1) if n not in self.slots)
            self.slots[slot] = (device, address, size)
            grown = size
        elif kind == 1:
            slot = self.freed_slot = self.freed_slot + slots.zigzag()
            device, address, size = self.slots.pop(slot)
            self.freed_at[table_index(size, 10)] = address
            grown = -size
        elif kind == 2:
            address = addresses.varint()
            if address == 0:
                event["kind"] = "release"
        event.update(device=list(device), slot=slot, address=address, size=size)
        if kind in (0, 3):
            event["stack"] = stacks.id()
        if tag & 32:
            allocated, reserved = self.totals.get(device, (0, 0))
            allocated = (allocated + grown + (totals.zigzag() if tag & 64 else 0)) & MASK
            reserved = (reserved + (totals.zigzag() if tag & 128 else 0)) & MASK
            self.totals[device] = (allocated, reserved)
            event.update(allocated=allocated, reserved=reserved)
        return event

    def read_attribution(self, event, sequences=None, nodes=None, node_sequences=None):
        """An omitted column is all 0: equal to the previous value, for numbers that are differences."""
        if sequences is not None:
            self.sequence = (self.sequence + sequences.zigzag()) & MASK
        if self.sequence != 0:
            event["sequence"] = self.sequence
        node = nodes.id() if nodes is not None else None
        if node is not None:
            if node_sequences is not None:
                self.node_sequence = (self.node_sequence + node_sequences.zigzag()) & MASK
            event.update(node=node, node_sequence=self.node_sequence)

    def read_totals(self, payload):
        head = Bytes(payload)
        events, time, devices = head.varint(), head.varint(), []
        for _ in range(head.varint()):
            body = Bytes(head.take(head.varint()))
            device = [body.zigzag(), body.zigzag(), *(body.varint() for _ in range(3))]
            devices.append(device + [body.varint() for _ in range(4)] if device[2] & 1 else device)
        self.totals_frames.append([events, time, devices])

    def read_state(self, payload):
        head = Bytes(payload)
        state = [head.varint(), head.varint(), head.id(), *(head.varint() for _ in range(5))]
        devices = [[head.zigzag(), head.zigzag(), *(head.varint() for _ in range(3))] for _ in range(head.varint())]
        blocks = head.varint()

        def column(count, read, sums=False):
            body = Bytes(head.take(head.varint()))
            values = [read(body) for _ in range(count)]
            if not body.done():
                raise ValueError("a column of a state is not used up")
            return [value & MASK for value in itertools.accumulate(values)] if sums else values

        number, difference, code = Bytes.varint, Bytes.zigzag, Bytes.id
        kinds = (number, True), (number,), (difference, True), (number,), (code,), (difference, True), (code,)
        kinds += (difference, True), (code,), (difference, True)
        columns = [column(blocks, *kind) for kind in kinds]
        tables = [column(count, difference, True) for count in (1024, 4096)]
        entries = [[[n, address] for n, address in enumerate(table) if address] for table in tables]
        self.states.append([*state, devices, [list(block) for block in zip(*columns)], *entries])


READERS = {
    1: Recording.read_definitions,
    2: Recording.read_events,
    3: Recording.read_samples,
    4: Recording.read_totals,
    5: Recording.read_state,
}


def main():
    recording = Recording()
    with open(sys.argv[1], "rb") as file:
        recording.read(file.read())
    tables = ("process", "strings", "locations", "stacks", "threads", "modules", "losses", "marks", "end", "skipped", "problem")
    for name in tables:
        print(json.dumps({name: getattr(recording, name)}))
    for name in ("nn_modules", "nn_module_names", "tensors", "autograd_nodes"):
        if getattr(recording, name):
            print(json.dumps({name: getattr(recording, name)}))
    for name, frames in (("totals", recording.totals_frames), ("states", recording.states)):
        if frames:
            print(json.dumps({name: frames}))
    for event in recording.events:
        print(json.dumps(event))
    for sample in recording.samples:
        print(json.dumps({"sample": sample}))


if __name__ == "__main__":
    main()
