"""Releases GPU memory and page-locked memory in the ways that allocate or free no block. Each moment is a mark of
the recording; prints PyTorch's own counters at these moments as JSON.

    released_gpu.py [SETTINGS]      of PyTorch's allocator
"""

import ctypes
import json
import sys

import torch

MIB = 1 << 20
moments = {}


def mark(name):
    ctypes.CDLL(None).tidemark_mark(name.encode())
    pinned = torch.cuda.host_memory_stats() if hasattr(torch.cuda, "host_memory_stats") else {}
    moments[name] = {
        "allocated": torch.cuda.memory_allocated(0),
        "reserved": torch.cuda.memory_reserved(0),
        "pinned": pinned.get("allocated_bytes.current"),
    }


def empty(size):
    return torch.empty(int(size), dtype=torch.uint8, device="cuda:0")


def limit(size):
    """This much may be reserved in addition."""
    _, total = torch.cuda.mem_get_info(0)
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved(0) + size) / total, 0)


def emptied():
    kept, cached = empty(3 * MIB), [empty(50 * MIB) for _ in range(3)]
    del cached
    mark("cached")
    torch.cuda.empty_cache()
    mark("emptied with a block")
    del kept
    torch.cuda.empty_cache()
    mark("emptied")


def pools():
    """A private pool, and a graph's."""
    if not hasattr(torch.cuda, "use_mem_pool"):
        return
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        block = empty(30 * MIB)
    del block
    mark("cached in a pool")
    del pool
    mark("without the pool")
    torch.cuda.empty_cache()
    mark("emptied without the pool")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        block = empty(40 * MIB)
    del block
    mark("graph")
    graph.reset()
    del graph
    torch.cuda.empty_cache()
    mark("without the graph")


def retried():
    """Cached memory is released before a request fails; and before one succeeds."""
    limit(256 * MIB)
    cached = [empty(60 * MIB) for _ in range(3)]
    del cached
    try:
        empty(300 * MIB)
    except torch.cuda.OutOfMemoryError:
        mark("failed")
    cached = [empty(60 * MIB) for _ in range(3)]
    del cached
    large = empty(200 * MIB)
    mark("retried")
    del large
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1.0, 0)


def collected():
    """garbage_collection_threshold, which cannot be reset."""
    limit(400 * MIB)
    torch.cuda.memory._set_allocator_settings("garbage_collection_threshold:0.5")
    cached = [empty(25 * MIB) for _ in range(8)]
    del cached
    kept = [empty(70 * MIB) for _ in range(3)]
    mark("collected")
    del kept
    torch.cuda.set_per_process_memory_fraction(1.0, 0)


def pinned():
    buffers = [torch.empty(int(size * MIB), dtype=torch.uint8, pin_memory=True) for size in (1.1, 5, 8)]
    mark("pinned")
    del buffers
    mark("pinned and cached")
    if hasattr(torch._C, "_host_emptyCache"):
        torch._C._host_emptyCache()
        mark("unpinned")


def main():
    if settings := sys.argv[1:2]:
        torch.cuda.memory._set_allocator_settings(settings[0])
    for part in (emptied, pools, retried, pinned, collected):
        torch.cuda.empty_cache()
        part()
    torch.cuda.empty_cache()
    mark("end")
    print(json.dumps({"moments": moments}))


if __name__ == "__main__":
    main()
