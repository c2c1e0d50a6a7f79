"""Products of small matrices whose values are known: prints the seconds of processor time that the planned program took for them."""

import json
import sys
import time

import torch

x = torch.randn(500, 500).cuda() / 25
start = time.process_time()
for _ in range(3000):
    x = x @ x
    x = x / x.norm().clamp(min=1)
print(json.dumps([time.process_time() - start]), file=sys.stderr)
