"""Makes and frees many CPU tensors, prints how many bytes it still holds, and exits without freeing them.

The bytes come from the tensors' sizes. os._exit prevents the interpreter from freeing them, so that
the live memory at the end of a recording equals the program's number.
"""

import json
import os
import random

import torch

torch.set_num_threads(1)
rng = random.Random(1)
held = []
for i in range(2000):
    dtype = rng.choice([torch.uint8, torch.float16, torch.float32, torch.int64])
    held.append(torch.empty(rng.randint(1, 4096), dtype=dtype))
    if rng.random() < 0.7:
        held.pop(rng.randrange(len(held)))
views = [tensor[:1] for tensor in held]  # views hold no bytes of their own
sizes = [tensor.numel() * tensor.element_size() for tensor in held]
print(json.dumps({"held_bytes": sum(sizes), "held_blocks": len(sizes), "largest_bytes": max(sizes)}), flush=True)
os._exit(0)
