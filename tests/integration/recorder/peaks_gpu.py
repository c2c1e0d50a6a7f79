"""Uses the CUDA caching allocator in every way that moves its peaks, then prints PyTorch's counters as JSON.

Needs a CUDA (or ROCm) device. With --graph it also captures a CUDA graph, which allocates from a pool of its own.
"""

import argparse
import json
import random
import sys
import threading

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--graph", action="store_true")
args = parser.parse_args()
if not torch.cuda.is_available():
    sys.exit("peaks_gpu.py: no CUDA device")
device = torch.device("cuda:0")


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device=device)


def churn(seed, rounds=2000):
    """Blocks of all sizes, from the small pool (up to 1 MiB) and the large one, freed in any order."""
    rng = random.Random(seed)
    held = []
    for _ in range(rounds):
        held.append(empty(int(2 ** rng.uniform(0, 24))))
        while held and rng.random() < 0.48:
            held.pop(rng.randrange(len(held)))
    return held


def streams():
    """Blocks used on another stream are freed later than the program frees them."""
    side = torch.cuda.Stream()
    for i in range(50):
        block = empty((i + 1) << 18)
        with torch.cuda.stream(side):
            own = empty((i + 1) << 17)
            own.zero_()
            block.record_stream(side)
            block.zero_()
        del block, own
    torch.cuda.synchronize()


def training():
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in (64, 256, 128):
        model(torch.randn(batch, 1024, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def graph():
    captured = torch.cuda.CUDAGraph()
    static = torch.zeros(1 << 20, device=device)
    with torch.cuda.graph(captured):
        result = (static * 2 + 1).cumsum(0)
    for _ in range(3):
        captured.replay()
    torch.cuda.synchronize()
    return result.sum().item()


def requests_that_fail():
    total = torch.cuda.get_device_properties(device).total_memory
    for times in (2, 3):
        try:
            empty(times * total)
        except torch.cuda.OutOfMemoryError:
            pass


held = churn(1)
training()
requests_that_fail()
streams()
workers = [threading.Thread(target=churn, args=(seed, 500)) for seed in (2, 3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
del held
torch.cuda.empty_cache()
kept = churn(4, 500)
big = empty(1 << 30)  # the peak of both
del big
torch.cuda.empty_cache()
if args.graph:
    graph()
torch.cuda.synchronize()
print(
    json.dumps(
        {
            "device": str(device),
            "max_memory_allocated": torch.cuda.max_memory_allocated(device),
            "max_memory_reserved": torch.cuda.max_memory_reserved(device),
            "memory_allocated": torch.cuda.memory_allocated(device),
            "memory_reserved": torch.cuda.memory_reserved(device),
            "num_ooms": torch.cuda.memory_stats(device)["num_ooms"],
        }
    ),
    flush=True,
)
