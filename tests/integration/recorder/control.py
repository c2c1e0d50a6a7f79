"""Pauses and resumes its recording through the C functions, or attaches to it when PyTorch is loaded already (--attach).

Sizes identify the allocations to be seen: 1001 ... before, 2001 ... while paused (or not attached yet), 3001 ... after.
"""

import argparse
import ctypes
import os
import threading

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--attach", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
kept = []


def allocate(first, count=10):
    kept.extend(torch.empty(first + n, dtype=torch.uint8) for n in range(count))


def in_thread(first):
    thread = threading.Thread(target=allocate, args=(first,))
    thread.start()
    thread.join()


if args.attach:
    allocate(2001)
    in_thread(2101)
    tidemark = ctypes.CDLL(os.environ["TIDEMARK_LIBRARY"])
    tidemark.tidemark_attach.restype = ctypes.c_size_t
    print("slots", tidemark.tidemark_attach() > 0, tidemark.tidemark_attach() > 0)
else:
    allocate(1001)
    tidemark = ctypes.CDLL(None)
    tidemark.tidemark_pause()
    tidemark.tidemark_pause()  # calls do not nest
    allocate(2001)
    in_thread(2101)  # a thread that has never recorded
    del kept[:5]  # frees that are not seen
    tidemark.tidemark_resume()
allocate(3001)
in_thread(3101)
del kept[-10:]
print("kept", sum(tensor.numel() for tensor in kept), flush=True)
os._exit(0)
