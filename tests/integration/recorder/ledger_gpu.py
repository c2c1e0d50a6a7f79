"""Takes GPU memory in the given way, holds it for three seconds, marks that moment as "held", and
prints CUDA's and PyTorch's values as JSON.

    ledger_gpu.py lora|libraries|graph|nccl        nccl: one of two ranks of torchrun
"""

import ctypes
import json
import os
import pathlib
import runpy
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]


def lora():
    """A model that stays until the end, after some steps of training."""
    sys.argv = ["lora_finetune.py", "--size", "medium", "--steps", "10"]
    return runpy.run_path(str(ROOT / "examples" / "lora_finetune.py"), run_name="__main__")


def libraries():
    """cuBLAS with many shapes and types, cuDNN's convolutions, forward and backward, cuFFT and cuSOLVER: kernels and workspaces."""
    kept = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for n in (64, 257, 1024, 4096):
            a = torch.randn(n, n, device="cuda", dtype=dtype)
            kept += [a @ a, torch.bmm(a[None].expand(4, n, n), a[None].expand(4, n, n))]
    torch.backends.cudnn.benchmark = True
    net = torch.nn.Sequential(
        *(layer for c in (3, 64, 128, 256) for layer in (torch.nn.Conv2d(c, 64 if c == 3 else 2 * c, 3, padding=1), torch.nn.ReLU()))
    ).cuda()
    for batch in (4, 16):
        net(torch.randn(batch, 3, 128, 128, device="cuda")).square().mean().backward()
    rnn = torch.nn.LSTM(256, 512, 2).cuda()
    rnn(torch.randn(64, 8, 256, device="cuda"))[0].sum().backward()
    kept.append(torch.fft.fft2(torch.randn(16, 1024, 1024, device="cuda")))
    kept.append(torch.linalg.svd(torch.randn(512, 512, device="cuda")))
    return kept, net, rnn


def graph():
    """A captured training step, with its memory in a private pool."""
    net = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
    x = torch.randn(512, 2048, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            net(x).square().mean().backward()
    torch.cuda.current_stream().wait_stream(side)
    net.zero_grad(set_to_none=True)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        net(x).square().mean().backward()
    for _ in range(5):
        captured.replay()
    return net, x, captured


def nccl():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    data = torch.ones(64 << 20, device="cuda")
    gathered = torch.empty(2 * data.numel(), device="cuda")
    for _ in range(5):
        torch.distributed.all_reduce(data)
        torch.distributed.all_gather_into_tensor(gathered, data)
    torch.cuda.synchronize()
    torch.distributed.barrier()
    return data, gathered


held = {"lora": lora, "libraries": libraries, "graph": graph, "nccl": nccl}[sys.argv[1]]()
torch.cuda.synchronize()
time.sleep(3)
program = ctypes.CDLL(None)
if hasattr(program, "tidemark_mark"):
    program.tidemark_mark(b"held")
free, total = torch.cuda.mem_get_info()
device = torch.cuda.current_device()
print(
    json.dumps(
        {
            "device": f"cuda:{device}",
            "free": free,
            "total": total,
            "reserved": torch.cuda.memory_reserved(),
            "allocated": torch.cuda.memory_allocated(),
        }
    ),
    flush=True,
)
if torch.distributed.is_initialized():
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
