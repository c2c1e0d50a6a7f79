"""The programs that torch_versions.py plans with each version of PyTorch: `programs.py NAME`.

Each takes two steps and writes, for each of its processes, a line `COUNTED {...}` with PyTorch's counters of its device.
"""

import json
import os
import socket
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch import nn

RANKS = 2


def counted(device=0, **more):
    """Prints the counters of PyTorch's allocator."""
    stats = torch.cuda.memory_stats(device)
    figures = {
        "device": device,
        "peak_allocated_bytes": stats["allocated_bytes.all.peak"],
        "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
        "out_of_memory_count": stats["num_ooms"],
    }
    sys.stdout.write(f"COUNTED {json.dumps(figures | more)}\n")  # in one call: ranks share the stream
    sys.stdout.flush()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 8 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Transformer(nn.Module):
    def __init__(self, width=512, layers=4, vocabulary=8192):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*[Block(width, width // 64) for _ in range(layers)])
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens)))


def train(model, inputs, targets=None, steps=2):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(steps):
        output = model(inputs)
        loss = output.square().mean() if targets is None else F.cross_entropy(output.flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def mlp():
    model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU())]).cuda()
    train(model, torch.randn(256, 1024, device="cuda"))
    counted()


def transformer():
    tokens = torch.randint(8192, (8, 512), device="cuda")
    train(Transformer().to("cuda", torch.bfloat16), tokens, tokens)
    counted()


expandable = transformer


def cnn():
    layers = []
    for before, after in ((3, 64), (64, 128), (128, 256)):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    train(nn.Sequential(*layers).cuda(), torch.randn(16, 3, 64, 64, device="cuda"))
    counted()


def graph():
    model = nn.Linear(1024, 1024, device="cuda")
    inputs = torch.randn(512, 1024, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        model(inputs).sum().backward()
    torch.cuda.current_stream().wait_stream(stream)
    model.zero_grad(set_to_none=True)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        model(inputs).square().sum().backward()
    captured.replay()
    counted()


def oom():
    held = []
    try:
        while True:
            held.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError if hasattr(torch, "OutOfMemoryError") else torch.cuda.OutOfMemoryError as error:
        assert "Tried to allocate 1024.00 MiB" in str(error) or "Tried to allocate 1.00 GiB" in str(error), error
    counted()


def sort():
    values = torch.randint(100_000, (1_000_003,), device="cuda")
    values.sort()
    values.unique()
    values.topk(100)
    values.cumsum(0)
    values.float().sort(stable=True)
    torch.randperm(300_001, device="cuda")
    embedding = nn.Embedding(5000, 64, device="cuda")
    embedding(values[:50_000] % 5000).sum().backward()
    counted()


def compiled():
    model = torch.compile(nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.LayerNorm(256)).cuda())
    train(model, torch.randn(64, 256, device="cuda"))
    counted()


def ranks(name):
    """Starts this program once for each rank, like torchrun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"WORLD_SIZE": RANKS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free.getsockname()[1]}
    started = []
    for rank in range(RANKS):
        environment = os.environ | {key: str(value) for key, value in (place | {"RANK": rank, "LOCAL_RANK": rank}).items()}
        started.append(subprocess.Popen([sys.executable, __file__, name], env=environment))
    sys.exit(max(process.wait() for process in started))


def distributed(wrap):
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    train(wrap(model), torch.randn(64, 1024, device="cuda"))
    counted(rank, rank=rank)
    torch.distributed.destroy_process_group()


def ddp():
    distributed(nn.parallel.DistributedDataParallel)


def fsdp2():
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:  # before 2.6
        from torch.distributed._composable.fsdp import fully_shard

    def wrap(model):
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        return model

    distributed(wrap)


PROGRAMS = [mlp, transformer, cnn, graph, expandable, oom, sort, ddp, fsdp2, compiled]

if __name__ == "__main__":
    if sys.argv[1] in ("ddp", "fsdp2") and "RANK" not in os.environ:
        ranks(sys.argv[1])
    globals()[sys.argv[1]]()
