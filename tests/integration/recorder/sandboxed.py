"""Programs whose system calls or memory are limited. The first argument is the kind of limit, the second the time: before the first tensor,
after it, in the program that this one becomes, or without any tensor."""

import ctypes
import os
import resource
import struct
import sys
import threading
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
KILL_PROCESS, ERRNO, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
# System calls that recording needs and this program does not, by number on x86-64 and on arm64.
UNUSED = {
    "memfd_create": (319, 279),
    "socket": (41, 198),
    "connect": (42, 203),
    "sendmsg": (46, 211),
    "ftruncate": (77, 46),
    "process_vm_readv": (310, 270),
    "membarrier": (324, 283),
    "prctl": (157, 167),
    "getppid": (110, 173),
}


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def refuse(action):
    machine = 0 if os.uname().machine == "x86_64" else 1
    instructions = [(LOAD_NUMBER, 0, 0, 0)]
    for numbers in UNUSED.values():
        instructions += [(JUMP_IF_EQUAL, 0, 1, numbers[machine]), (RETURN, 0, 0, action)]
    instructions.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
    program = Program(len(instructions), ctypes.addressof(code))
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0:
        sys.exit("no seccomp filters here")


def limit_memory(more):
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


LIMITS = {
    "kill": lambda: refuse(KILL_PROCESS),
    "errno": lambda: refuse(ERRNO | 1),
    "memory": lambda: limit_memory(64 << 20),
    "little": lambda: limit_memory(512 << 10),
}


def allocate(first):
    return [torch.empty(first + n, dtype=torch.uint8) for n in range(10)]


def main(limit, when):
    kept = []
    if when == "after":
        kept += allocate(1000)
    limited = threading.Event()

    def work():
        limited.wait()
        kept.extend(allocate(3000))

    thread = threading.Thread(target=work)
    if limit == "little":  # there will be no room for its stack; an existing thread is under no filter
        thread.start()
    LIMITS[limit]()
    if when == "exec":
        os.execv(sys.executable, [sys.executable, __file__, "none", "before"])
    kept += allocate(2000)
    if limit == "memory":
        kept.append(bytearray(40 << 20))
    if when == "after":
        limited.set()
        if limit != "little":
            thread.start()
        thread.join()
    print(limit, when, len(kept))


if __name__ == "__main__":
    LIMITS["none"] = lambda: None
    if sys.argv[2] == "never":
        LIMITS[sys.argv[1]]()
        print("without a tensor")
    else:
        import torch

        main(*sys.argv[1:])
