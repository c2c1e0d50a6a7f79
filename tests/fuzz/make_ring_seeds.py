#!/usr/bin/env python3
"""Makes the seeds of ring_fuzz: records that real processes write into their rings, by src/collect/ring/layout.h.

    tests/fuzz/make_ring_seeds.py tests/fuzz/corpus/ring
"""
import os
import struct
import sys

PAYLOAD = 16 * 1024 - 16
NO_STACK = 0xFFFFFFFF
ALLOCATE, FREE, OUT_OF_MEMORY, PAUSE, RESUME, BLOB, RESET = range(1, 8)
AUTOGRAD, AUTOGRAD_NODE, AUTOGRAD_THREAD = 9, 10, 11
DRIVER, ALLOCATOR = 8, 10
TAKE, TAKE_HOST, GIVE_BACK, CREATE, MAP, UNMAP = 1, 3, 4, 5, 8, 9  # calls of CUDA
THREAD, PROCESS, CODE, MODULE, STACK, NOTE = range(1, 7)
LINES = 12
GENERATED = b"/tmp/ab/cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrs.py"


def record(kind, fields, device=(1, 0), stack=NO_STACK):
    return struct.pack("<BbbBI", kind, *device, 1 + len(fields), stack) + struct.pack(f"<{len(fields)}Q", *fields)


def text(value):
    return struct.pack("<I", len(value)) + value


def definition(kind, *parts):
    """Records that carry one definition, in blobs of at most 1024 bytes."""
    whole = struct.pack("<I", kind) + b"".join(parts)
    pieces = [whole[at:at + 1024] for at in range(0, len(whole), 1024)]
    records = []
    for index, piece in enumerate(pieces):
        flags = (index == 0) | (index == len(pieces) - 1) << 1
        words = (len(piece) + 7) // 8
        header = struct.pack("<BbbBI", BLOB, flags, 0, 1 + words, len(piece))
        records.append(header + piece.ljust(words * 8, b"\0"))
    return records


def code(address, version, kind, file, function, table, first_line=10, offset=200):
    return definition(CODE, struct.pack("<QIII", address, version, first_line, offset), bytes([kind]), text(file),
                      bytes([kind]), text(function), text(table))


def lines(file, *entries):
    """Entries: line, number of its trace, and the trace if it is new."""
    return definition(LINES, b"\1", text(file), *(struct.pack("<II", line, number) + (b"\1" + text(trace[0]) if trace else b"")
                                                  for line, number, *trace in entries))


def module(start, end, path=b"/usr/lib/libtorch_cpu.so"):
    return definition(MODULE, struct.pack("<QQQ", start, end, start), text(path), text(bytes(range(20))))


def stack(number, python=(), native=()):
    return definition(STACK, struct.pack("<III", number, len(python), len(native)),
                      *(struct.pack("<QI", *frame) for frame in python), struct.pack(f"<{len(native)}Q", *native))


def thread(tid, name=b"python"):
    return definition(THREAD, struct.pack("<I", tid), text(name))


def process():
    return definition(PROCESS, struct.pack("<iii", 1, 1, 2), text(b"3.11.7"), text(b"/opt/torch/lib/libc10.so.1.13"))


# The script: see ring_fuzz.cpp.
def append(chunk, data):
    return struct.pack("<BBH", 0, chunk, len(data)) + data


def head(lane, chunk):
    return struct.pack("<BBH", 1, lane, chunk)


def link(chunk, following):
    return struct.pack("<BBH", 2, chunk, following)


def lane_state(lane, owner, busy=0, dropped=0):
    return struct.pack("<BBBBB", 6, lane, owner, busy, dropped)


LOOK = b"\5"
START = struct.pack("<BQ", 7, 1000)


def beginning(lane, tid, *more):
    """A lane whose first chunk has its number."""
    data = b"".join(part for parts in (thread(tid), *more) for part in parts)
    return lane_state(lane, tid) + head(lane, lane + 1) + append(lane, data)


def seeds():
    events = [record(ALLOCATE, [2000, 0x7F00, 512, 512, 2 << 20], stack=0), record(FREE, [2100, 0x7F00, 0, 2 << 20]),
              record(ALLOCATE, [2200, 0x5500, 100], (0, 0)), record(ALLOCATE, [2300, 0x5500, 64], (0, 0), 7),
              record(OUT_OF_MEMORY, [2400, 0, 1 << 40, 0, 2 << 20]), record(PAUSE, [2500]), record(RESUME, [2600]),
              record(FREE, [2700, 0x9999], (-3, -1))]
    yield "events.ring", START, beginning(0, 7, process(), stack(0), events), LOOK
    # Line tables of 3.9, 3.10 and 3.11; names of one, two and four bytes a character.
    codes = [code(0x100, 0x0309, 1, b"a.py", b"f", bytes([2, 1, 4, 255, 6, 2])),
             code(0x200, 0x030A, 2, "ä.py".encode("utf-16-le"), "λ".encode("utf-16-le"), bytes([4, 1, 6, 128, 8, 3])),
             code(0x300, 0x030B, 4, "😀.py".encode("utf-32-le"), "g".encode("utf-32-le"),
                  bytes([0xF0, 0x02, 0xD8, 0x00, 0x05, 0x80, 0x0A, 0xF8]))]
    python = stack(0, [(0x100, 4), (0x200, 3), (0x300, 204), (0x400, 2)])
    native = stack(1, [(0x300, 208)], [0x1010, 0x1FFF, 0x8000])
    allocations = [record(ALLOCATE, [3000 + n, 0x1000 * n, 512], stack=n % 3) for n in range(1, 9)]
    yield "stacks.ring", START, beginning(0, 7, *codes, module(0x1000, 0x2000), python, native, allocations), LOOK
    yield "reset.ring", START, beginning(0, 7, python, allocations, [record(RESET, [])], stack(0), allocations)
    long = code(0x100, 0x030B, 1, b"x" * 3000, b"f", bytes(range(256)) * 8)
    yield "long.ring", START, beginning(0, 7, long, stack(0, [(0x100, 220)]), allocations[:1]), LOOK
    note = definition(NOTE, struct.pack("<I", 5), text(b"no stacks of this interpreter"))
    yield "note.ring", START, beginning(0, 7, note, events)
    traces = [b'  File "model.py", line %d, in forward\n    x = block(x)\n  File "model.py", line 9, in block\n' % line for line in (3, 4)]
    generated = code(0x100, 0x030B, 1, GENERATED, b"call", bytes([0xF0, 0x02, 0xD8, 0x00, 0x05, 0x80, 0x0A, 0xF8]))
    told = lines(GENERATED, (1, 1, traces[0]), (10, 2, traces[1]), (12, 0), (13, 1))
    late = stack(0, [(0x100, 204)]), told, stack(1, [(0x100, 204), (0x100, 208)])
    yield "lines.ring", START, beginning(0, 7, generated, *late, allocations, [record(RESET, [])], generated, stack(0, [(0x100, 206)])), LOOK
    made = definition(AUTOGRAD_THREAD, struct.pack("<Q", 3))
    node = definition(AUTOGRAD_NODE, struct.pack("<IQI", 0, 3, 0), text(b"N5torch8autograd9generated14AddmmBackward0E"))
    other = definition(AUTOGRAD_NODE, struct.pack("<IQI", 1, 4, 1), text(b"ScaleBackward"))
    at = [record(AUTOGRAD, [5], (0, 0), 0), record(AUTOGRAD, [5, 2], (0, 0), 1), record(AUTOGRAD, [6, (1 << 64) - 1], (0, 0), 2),
          record(AUTOGRAD, [7, 1], (0, 0), 3), record(AUTOGRAD, [8, 1], (0, 0), 0)]
    moments = [part for number, where in enumerate(at) for part in (where, allocations[number])]
    yield "autograd.ring", START, beginning(0, 7, made, node, other, moments, [record(RESET, [])], allocations[5:], moments), LOOK
    page = 2 << 20
    calls = [record(ALLOCATOR, [1900, 0x10000, 5 * page], (TAKE, 0)), record(ALLOCATOR, [1910, 77, page], (CREATE, 0)),
             record(ALLOCATOR, [1920, 0x90000000, page, 77], (MAP, -1)), record(ALLOCATE, [2000, 0x10000, 512, 512, 6 * page]),
             record(DRIVER, [2010, 0x5000, page], (TAKE_HOST, -1), 0), record(ALLOCATOR, [2100, 0x10000], (GIVE_BACK, -1)),
             record(ALLOCATOR, [2200, 0x90000000, page], (UNMAP, -1)), record(ALLOCATOR, [2210, 0x90000000, page], (UNMAP, -1)),
             record(DRIVER, [2300, 0x5000, 1], (GIVE_BACK, -1))]
    yield "segments.ring", START, beginning(0, 7, stack(0), calls), LOOK
    # Two threads whose events alternate; one of them is inside an event when the recorder looks.
    lanes = [beginning(lane, 7 + lane, [record(ALLOCATE, [2000 + 10 * n + lane, 4096 * n + lane, 32], (0, 0))
                                        for n in range(20)]) for lane in range(3)]
    yield "lanes.ring", START, *lanes, lane_state(1, 8, busy=1, dropped=3), LOOK, lane_state(1, 8), LOOK
    full = append(5, record(FREE, [2000, 1]) * (PAYLOAD // 24))
    yield "chain.ring", START, beginning(0, 7), link(0, 6), full, LOOK, link(5, 8), append(7, events[0]), LOOK
    random = b"".join(record(ALLOCATE, [n * 7919 % 65536, n * 104729, n * 31]) for n in range(480))
    yield "size_limit.ring", START, beginning(0, 7), link(0, 6), append(5, random), LOOK
    yield "unfinished.ring", START, beginning(0, 7, long[:2], thread(8), long[1:], events), LOOK
    loop = beginning(0, 7, events), link(0, 2), beginning(1, 8, events), link(1, 1)
    yield "loop.ring", START, *loop, LOOK
    no_length = append(0, bytes(8))
    yield "broken.ring", START, beginning(0, 7, events), no_length, LOOK, head(1, 1025), lane_state(1, 9), LOOK


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, *parts in seeds():
        limit = 4 if name == "size_limit.ring" else 0
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes([limit]) + b"".join(parts))


main()
