"""One rank of a torchrun job: allocates (rank + 1) * 4000 bytes and prints that."""

import os

import torch

rank = int(os.environ["RANK"])
tensor = torch.ones(1000 * (rank + 1))
os.write(1, b"rank %d sum %d\n" % (rank, tensor.sum().item()))
