"""Allocates for ever and says how far it is, so that it can be killed at any instant and compared with what was recorded.

Allocation number n (from 1) is 4096 + n bytes. A line "n" on stdout means that allocations 1 to n have been made. Of these,
the last 8 are alive after each line.
"""

import argparse
import os

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--every", type=int, default=100, help="allocations between two lines")
parser.add_argument("--until", type=int, default=0, help="stop after so many (0: never)")
args = parser.parse_args()

torch.set_num_threads(1)
alive = [None] * 8
n = 0
while not args.until or n < args.until:
    n += 1
    alive[n % 8] = torch.empty(4096 + n, dtype=torch.uint8)
    if n % args.every == 0:
        os.write(1, b"%d\n" % n)
