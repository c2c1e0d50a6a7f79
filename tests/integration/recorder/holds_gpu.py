"""Holds 2 GiB of the GPU for three seconds, then prints CUDA's and PyTorch's values as JSON."""
import json
import time

import torch

held = torch.ones(2 << 30, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
time.sleep(3)
free, total = torch.cuda.mem_get_info()
print(json.dumps({"free": free, "total": total, "reserved": torch.cuda.memory_reserved()}))
