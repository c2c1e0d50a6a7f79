"""Fills the phantom's memory: blocks of 64 MiB until PyTorch has no more, which ends the program; or it goes on."""

import sys

import torch


def fill(kept):
    while True:
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))


kept = []
if "--survive" in sys.argv:
    try:
        fill(kept)
    except torch.cuda.OutOfMemoryError:
        print(len(kept), flush=True)
    kept.clear()
    sys.stdin.read()
else:
    fill(kept)
