"""Marks moments and ranges through the C functions, and allocates in them: sizes identify the places.

Sizes: 1001 before everything, 2001 in "step", 3001 in "step" > "backward", 4001 after it.
"""

import ctypes

import torch

torch.set_num_threads(1)
tidemark = ctypes.CDLL(None)
tidemark.tidemark_mark(b"before PyTorch allocates")
kept = [torch.empty(1001, dtype=torch.uint8)]
for _ in range(2):
    tidemark.tidemark_range_begin(b"step")
    kept.append(torch.empty(2001, dtype=torch.uint8))
    tidemark.tidemark_range_begin("rückwärts".encode())
    kept.append(torch.empty(3001, dtype=torch.uint8))
    tidemark.tidemark_range_end("rückwärts".encode())
    tidemark.tidemark_range_end(b"step")
tidemark.tidemark_mark(None)
tidemark.tidemark_mark(b"x" * 300)
kept.append(torch.empty(4001, dtype=torch.uint8))
