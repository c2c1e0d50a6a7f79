"""Two ranks, each on a device of its own, or with a fault: rank 1 uses rank 0's too. Each rank writes a line of JSON.

    python wrong_device.py CASE
"""

import json
import os
import sys
import tempfile

from rank_launcher import launch

MIB = 1 << 20


def fixed_device(rank):
    """The device is a constant somewhere in the code."""
    import torch

    return torch.empty(16 * MIB, device=f"cuda:{rank}"), torch.empty(8 * MIB, device="cuda:0")


def optimizer_of_rank_0(rank):
    """The optimizer's state is loaded to rank 0's device."""
    import torch

    parameter = torch.nn.Parameter(torch.ones(1024, 1024, device=f"cuda:{rank}"))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(optimizer.state_dict(), folder + "/optimizer.pt")
        return torch.load(folder + "/optimizer.pt", map_location="cuda:0")


def own_device(rank):
    import torch

    return torch.empty(8 * MIB, device=f"cuda:{rank}")


def main(case):
    import torch

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    kept = {function.__name__: function for function in (fixed_device, optimizer_of_rank_0, own_device)}[case](rank)
    torch.cuda.synchronize()
    print(json.dumps({"rank": rank, "pid": os.getpid(), "peaks": [torch.cuda.max_memory_allocated(device) for device in range(2)]}))
    del kept


main(sys.argv[1]) if "RANK" in os.environ else launch(__file__, *sys.argv[1:])
