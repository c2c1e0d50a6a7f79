"""A DataLoader whose workers are made by fork without exec and allocate tensors of their own."""

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randint(0, 1000, (32, 32), generator=generator).square()


before = torch.arange(100_000).sum().item()
loader = DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context="fork")
for epoch in range(2):
    for number, batch in enumerate(loader):
        print(f"epoch {epoch} batch {number} shape {tuple(batch.shape)} checksum {batch.sum().item()}")
print(f"parent {before} {torch.arange(100_000).sum().item()}")
