"""Ends with an uncaught exception while tensors are alive: exit code 1."""

import torch

held = [torch.full((1000,), i) for i in range(100)]
print("sum", sum(tensor.sum().item() for tensor in held), flush=True)
torch.ones(2, 3) @ torch.ones(2, 3)
