"""Allocates endlessly and prints its progress, so that it can be killed at any instant and compared with the recording.

Allocation number n (from 1) is 4096 + n bytes. A line "n" on stdout means that allocations 1 to n have been made. Of these,
the last 8 are alive after each line. With --workers N, N processes do so one after the other, each made by fork without exec
from a process that has allocated itself, with its lines in FOLDER/PID.
"""

import argparse
import os

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--every", type=int, default=100, help="allocations between two lines")
parser.add_argument("--until", type=int, default=0, help="stop after so many (0: never)")
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--folder", default=".", help="where the workers' lines go")
args = parser.parse_args()
torch.set_num_threads(1)


def grow(lines):
    alive = [None] * 8
    n = 0
    while not args.until or n < args.until:
        n += 1
        alive[n % 8] = torch.empty(4096 + n, dtype=torch.uint8)
        if n % args.every == 0:
            os.write(lines, b"%d\n" % n)


if args.workers == 0:
    grow(1)
for _ in range(args.workers):
    kept = torch.empty(1000, dtype=torch.uint8)
    pid = os.fork()
    if pid == 0:
        grow(os.open(f"{args.folder}/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os._exit(0)
    os.write(1, b"%d\n" % pid)
    os.waitpid(pid, 0)
