"""Imports torch and allocates nothing of its own."""

import torch

print(torch.float32.is_floating_point)
