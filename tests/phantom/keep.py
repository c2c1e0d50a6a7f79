"""Fills the phantom's memory: blocks of 1 GiB until PyTorch has no more, which ends the program; or it goes on."""

import sys
import time

import torch


def fill(kept):
    while True:
        if torch.cuda.mem_get_info()[0] < 1 << 30:
            time.sleep(0.5)  # the recorder samples what is free meanwhile
        kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))


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
