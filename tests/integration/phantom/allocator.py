"""Uses PyTorch's allocator in typical ways on two devices; prints PyTorch's own counters at the end, as JSON.

Every part returns its values, under its name. PyTorch's snapshot goes to the file $TIDEMARK_TEST_SNAPSHOT.
"""

import contextlib
import ctypes
import io
import json
import os
import runpy
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MIB = 1 << 20
NATIVE = torch.cuda.get_allocator_backend() == "native"


def graph():
    """Captured into a private pool, replayed, and freed."""
    model, batch = nn.Linear(1024, 1024, device="cuda"), torch.empty(64, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(batch).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad(set_to_none=True)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        model(batch).sum().backward()
    with torch.cuda.graph(second, pool=first.pool()):
        kept = model(batch) * 2
    first.replay()
    second.replay()
    del kept
    if not NATIVE:
        return None
    return {"pools": len({tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory._snapshot()["segments"]})}


def pinned():
    """Batches of a DataLoader that pins them, and back."""
    rows = torch.arange(1000.0).reshape(100, 10)
    sums = []
    for (batch,) in DataLoader(TensorDataset(rows), batch_size=10, pin_memory=True):
        assert batch.is_pinned()
        sums.append(batch.to("cuda", non_blocking=True).cpu().sum().item())
    large = torch.empty(MIB, pin_memory=True)
    large.copy_(torch.empty(MIB, device="cuda"), non_blocking=True)
    return {"sum": sum(sums), "expected": rows.sum().item()}


def streams():
    side, high = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record(side)
    used = torch.empty(4 * MIB, device="cuda")
    with torch.cuda.stream(high):
        high.wait_event(before)
        used.mul_(2)
        used.record_stream(high)
    del used
    after.record(high)
    after.synchronize()
    return {"different": side != high, "done": high.query() and before.query(), "timed": before.elapsed_time(after) > 0}


def peers():
    there = torch.arange(1000.0).to("cuda:0").to("cuda:1")
    back = there.to("cuda:0")
    free, total = torch.cuda.mem_get_info(1)
    return {"sum": back.cpu().sum().item(), "other": torch.cuda.memory_allocated(1), "total": total, "used": total - free}


def out_of_memory():
    """By the process's own limit, and by the size of the device."""
    messages = []
    torch.cuda.empty_cache()
    for fraction, block in ((0.01, 256 * MIB), (1.0, 8192 * MIB)):
        torch.cuda.set_per_process_memory_fraction(fraction)
        blocks = []
        try:
            while True:
                blocks.append(torch.empty(block, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError as error:
            messages.append(str(error))
        del blocks
        torch.cuda.empty_cache()
    return messages


def mark(name):
    """Prints PyTorch's allocated bytes, and marks the moment in the recording."""
    ctypes.CDLL(None).tidemark_mark(name.encode())
    return torch.cuda.memory_allocated(0)


def run_beside(name, *arguments):
    """The output of a program of tests/integration/recorder. Its variables stay alive."""
    sys.argv[1:] = arguments
    with contextlib.redirect_stdout(io.StringIO()) as said:
        globals()[name] = runpy.run_path(str(Path(__file__).parent.parent / "recorder" / name), run_name="__main__")
    return json.loads(said.getvalue())


def released():
    """Memory released without allocating or freeing a block."""
    return run_beside("released_gpu.py")


def churn():
    """The program used to check real GPUs: sizes of all kinds, streams, threads, requests that fail, a graph."""
    return run_beside("peaks_gpu.py", "--graph")


def history():
    """From here on, PyTorch records each event itself."""
    if NATIVE:
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=1_000_000)
    allocated = mark("history")
    torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    return allocated


def leak():
    """Training that keeps its outputs. Returns PyTorch's allocated bytes at the end of each step."""
    model = nn.Linear(256, 512, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    outputs, allocated = [], []
    for _ in range(24):
        outputs.append(model(torch.empty(64, 256, device="cuda")))
        outputs[-1].sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        allocated.append(torch.cuda.memory_allocated())
    globals()["leaked"] = outputs
    return allocated


kept = [torch.empty(1 << bits, dtype=torch.uint8, device=f"cuda:{bits % 2}") for bits in range(8, 27)]
del kept[3:9]
result = {"name": torch.cuda.get_device_name(1)}
result |= {name: globals()[name]() for name in list(sys.argv[1:])}
result["held"] = mark("held")
result["counters"] = [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]
if NATIVE:
    torch.cuda.memory._dump_snapshot(os.environ["TIDEMARK_TEST_SNAPSHOT"])
print(json.dumps(result), flush=True)
os._exit(0)  # live memory stays alive in the recording
