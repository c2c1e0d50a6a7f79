"""PyTorch's own snapshots with C++ frames (stacks="all", its default), of programs of two kinds. Prints their paths, and the line of each
allocation.

    python snapshots.py FOLDER
"""

import json
import sys

import torch
from situations import batch, mlp, update

MIB = 1 << 20


def here(offset):
    return sys._getframe(1).f_lineno + offset


def trained(path):
    torch.cuda.memory._record_memory_history()
    model = mlp(512, 2048, 512)
    optimizer = torch.optim.Adam(model.parameters())
    kept = []
    for _ in range(20):
        update(optimizer, model(batch(256, 512)).square().mean())
        kept.append(torch.empty(MIB, device="cuda"))
    line = here(-1)
    torch.cuda.memory._dump_snapshot(path)
    torch.cuda.memory._record_memory_history(None)
    return {"function": "trained", "line": line, "bytes": sum(tensor.nbytes for tensor in kept)}


def recorded_late(path):
    """The history is switched on after the model was made."""
    early = torch.empty(8 * MIB, device="cuda")
    torch.cuda.memory._record_memory_history()
    late = torch.empty(16 * MIB, device="cuda")
    line = here(-1)
    torch.cuda.memory._dump_snapshot(path)
    torch.cuda.memory._record_memory_history(None)
    return {"function": "recorded_late", "line": line, "bytes": late.nbytes, "before_bytes": early.nbytes}


if __name__ == "__main__":
    folder = sys.argv[1]
    print(json.dumps({program.__name__: program(f"{folder}/{program.__name__}.pickle") for program in (trained, recorded_late)}), flush=True)
