"""Leaves by os._exit(7), past every destructor and atexit handler, while tensors are alive."""

import os

import torch

held = [torch.full((1000,), i) for i in range(100)]
print("sum", sum(tensor.sum().item() for tensor in held), flush=True)
os._exit(7)
