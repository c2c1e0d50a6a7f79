"""Requests more memory than available, catches the error and continues: on the CPU, and on a GPU if there is one."""

import torch

kept = torch.ones(1000)
try:
    torch.empty(1 << 60, dtype=torch.uint8)
except RuntimeError:
    print("cpu: caught")

if torch.cuda.is_available():
    torch.cuda.set_per_process_memory_fraction(0.01)
    blocks = []
    try:
        while True:
            blocks.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        print(f"cuda: caught after {len(blocks)} blocks of 64 MiB")
print("kept", kept.sum().item())
