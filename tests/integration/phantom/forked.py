"""Functions in processes of their own, which are forked once PyTorch is loaded: loading takes longer than most of the functions.

The program calls nothing of CUDA itself. A process exits without PyTorch's cleanup, which takes time too.
"""

import gc
import json
import os
import tempfile

import torch

WORLD = 2


def in_child(function, *arguments):
    """Returns the child's result, as JSON."""
    gc.freeze()  # children neither copy nor search the loaded modules
    reading, writing = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writing, "w") as pipe:
            json.dump(function(*arguments), pipe)
        os._exit(0)
    os.close(writing)
    return os.fdopen(reading)


def run_rank(rank, store, function, arguments):
    torch.cuda.set_device(rank)
    store = torch.distributed.FileStore(store, WORLD)
    torch.distributed.init_process_group("nccl", store=store, rank=rank, world_size=WORLD, device_id=torch.device("cuda", rank))
    said = function(*arguments)
    torch.distributed.destroy_process_group()
    return said


def run_ranks(function, *arguments):
    """On two devices with NCCL: the function's result in each rank."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [in_child(run_rank, rank, f"{folder}/store", function, arguments) for rank in range(WORLD)]
        return [json.load(rank) for rank in ranks]


def run_alone(function, *arguments):
    return json.load(in_child(function, *arguments))
