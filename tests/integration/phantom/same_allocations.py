"""Programs in which no value decides a size: prints all events of PyTorch's allocator, for those that are named."""

import hashlib
import itertools
import json
import os
import sys

import torch
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.attention = torch.nn.LayerNorm(width), torch.nn.MultiheadAttention(width, 4, dropout=0.1, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width))

    def forward(self, x, mask):
        y = self.norm(x)
        x = x + self.attention(y, y, y, key_padding_mask=mask, need_weights=False)[0]
        return x + self.mlp(x)


class Transformer(torch.nn.Module):
    def __init__(self, width=64, recompute=False):
        super().__init__()
        self.embedding, self.head, self.recompute = torch.nn.Embedding(200, width), torch.nn.Linear(width, 200), recompute
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(3))

    def forward(self, ids, mask):
        x = self.embedding(ids) + torch.arange(ids.size(1), device=ids.device)[:, None].cos()
        for block in self.blocks:
            x = checkpoint(block, x, mask, use_reentrant=False) if self.recompute else block(x, mask)
        return self.head(x)


def train_transformer(recompute=False, autocast=False, wrap=lambda model: model):
    model = wrap(Transformer(recompute=recompute).cuda())
    optimizer = torch.optim.AdamW(model.parameters(), fused=autocast)
    scaler = torch.amp.GradScaler("cuda", enabled=autocast)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        ids = torch.randint(1, 200, (4, 32), generator=generator).cuda()
        mask = torch.arange(32, device="cuda")[None] >= torch.randint(8, 32, (4, 1), generator=generator).cuda()
        with torch.autocast("cuda", torch.float16, enabled=autocast):
            loss = torch.nn.functional.cross_entropy(model(ids, mask).flatten(0, 1), ids.masked_fill(mask, -100).flatten())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def train_convolutions():
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.AdaptiveAvgPool2d(2)]
    model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(32, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 3, 16, 16).cuda()), torch.randint(0, 10, (4,)).cuda())
        loss.backward()
        optimizer.step()
        schedule.step()
        loss.item()


def capture_graph():
    model = torch.nn.Linear(16, 16).cuda()
    x = torch.ones(4, 16, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x).sum()
    for _ in range(3):
        x.copy_(torch.randn(4, 16))
        graph.replay()
        y.item()


def train_on_ranks():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    train_transformer(wrap=lambda model: torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank]))
    torch.distributed.destroy_process_group()


PROGRAMS = {
    "plain": train_transformer,
    "recomputed": lambda: train_transformer(recompute=True),
    "autocast": lambda: train_transformer(autocast=True),
    "convolutions": train_convolutions,
    "graph": capture_graph,
    "compiled": lambda: train_transformer(wrap=torch.compile),
    "ranks": train_on_ranks,
}

torch.cuda.memory._record_memory_history(context=None, stacks="python")
torch.zeros(1, device="cuda")
for name in sys.argv[1:]:
    PROGRAMS[name]()
events = [(event["action"], event["size"]) for trace in torch.cuda.memory._snapshot()["device_traces"] for event in trace]
# Tensors that are freed together, as autocast's copies of the weights, are so in no order.
groups = itertools.groupby(events, lambda event: event[0].startswith("free"))
text = json.dumps([sorted(group) if frees else list(group) for frees, group in groups])
peaks = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]
print(json.dumps([len(events), hashlib.sha256(text.encode()).hexdigest(), *peaks]))
