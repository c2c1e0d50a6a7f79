"""One program under several settings of PyTorch's allocator, on any GPU, with PyTorch's own counters as JSON.

    python settings.py SNAPSHOT SETTINGS...

Each of the settings, texts of PYTORCH_ALLOC_CONF, has its own process; the first is recorded by PyTorch into the file
SNAPSHOT. The memory is limited to LIMIT by torch.cuda.set_per_process_memory_fraction(), so that garbage is collected.
"""

import json
import os
import pickle
import random
import sys

import torch

MIB = 1 << 20
LIMIT = 1000 * MIB
LIVE = 300 * MIB
COUNTERS = {
    "peak_allocated_bytes": "allocated_bytes.all.peak",
    "peak_reserved_bytes": "reserved_bytes.all.peak",
    "retry_count": "num_alloc_retries",
    "segment_count": "segment.all.allocated",
    "failures": "num_ooms",
}


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def churn(live, rng, count):
    """Allocates and frees blocks of all sizes on two streams, with at most LIVE bytes at a time."""
    side = torch.cuda.Stream()
    held = sum(block.numel() for block in live)
    for _ in range(count):
        with torch.cuda.stream(side if rng.random() < 0.2 else torch.cuda.default_stream()):
            live.append(tensor(int(2 ** rng.uniform(8, 26))))
        held += live[-1].numel()
        while held > LIVE:
            held -= live.pop(rng.randrange(len(live))).numel()


def work():
    rng = random.Random(11)
    live = []
    for _ in range(4):
        churn(live, rng, 400)
        del live[::2]
    torch.cuda.empty_cache()
    churn(live, rng, 300)
    if hasattr(torch.cuda, "use_mem_pool"):
        with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
            kept = [tensor(rng.randrange(1, 8 * MIB)) for _ in range(10)]
        del kept[::2]
    churn(live, rng, 300)


def counters_under(settings, snapshot):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = settings
    torch.cuda.set_per_process_memory_fraction(LIMIT / torch.cuda.mem_get_info()[1])
    if snapshot:
        torch.cuda.memory._record_memory_history(context=None)
    work()
    found = torch.cuda.memory_stats()
    used = torch.cuda.memory._snapshot()
    assert used["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] == settings
    if snapshot:
        with open(snapshot, "wb") as file:
            pickle.dump(used, file)
    return {key: found[name] for key, name in COUNTERS.items()}


def in_child(settings, snapshot):
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            with open(write, "w") as file:
                json.dump(counters_under(settings, snapshot), file)
        except Exception as error:
            print(f"{settings}: {error}", file=sys.stderr)
        os._exit(0)
    os.close(write)
    with open(read) as file:
        text = file.read()
    os.wait()
    return json.loads(text)


if __name__ == "__main__":
    results = {settings: in_child(settings, "" if index else sys.argv[1]) for index, settings in enumerate(sys.argv[2:])}
    print(json.dumps({"limit_bytes": LIMIT, "settings": results}))
