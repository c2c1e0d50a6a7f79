"""Two ranks on two devices of this machine: collectives, DistributedDataParallel and FSDP2. Each rank writes a line of JSON."""

import json
import os

from rank_launcher import launch


def collectives(rank):
    import torch
    import torch.distributed as dist

    def on_device(values, dtype=torch.int64):
        return torch.tensor(values, dtype=dtype).cuda()

    found = {}
    for name, operation in (("sum", dist.ReduceOp.SUM), ("max", dist.ReduceOp.MAX), ("product", dist.ReduceOp.PRODUCT)):
        value = on_device([rank + 2, 10 - rank])
        dist.all_reduce(value, op=operation)
        found[name] = value.tolist()
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        value = on_device([rank + 1.5, -0.25], dtype)
        dist.all_reduce(value, op=dist.ReduceOp.AVG)
        found[f"average {dtype}"] = value.tolist()
    value = on_device([7, 8] if rank == 1 else [0, 0])
    dist.broadcast(value, 1)
    found["broadcast"] = value.tolist()
    gathered = on_device([0] * 4)
    dist.all_gather_into_tensor(gathered, on_device([rank, rank + 5]))
    found["all_gather"] = gathered.tolist()
    shard = on_device([0, 0], torch.float32)
    dist.reduce_scatter_tensor(shard, on_device([1, 2, 3, 4], torch.float32))
    found["reduce_scatter"] = shard.tolist()
    exchanged = on_device([0, 0])
    dist.all_to_all_single(exchanged, on_device([rank * 2, rank * 2 + 1]))
    found["all_to_all"] = exchanged.tolist()
    value = on_device([0])
    other = 1 - rank
    sent = on_device([rank + 40])
    requests = [dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, value, other)]
    for request in dist.batch_isend_irecv(requests):
        request.wait()
    found["received"] = value.tolist()
    alone = dist.new_subgroups(group_size=1)[0]
    value = on_device([rank + 1])
    dist.all_reduce(value, group=alone)
    found["alone"] = value.tolist()
    large = torch.empty(1 << 20, device="cuda")
    dist.all_reduce(large)
    return found


def train(model, batch):
    import torch

    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import fully_shard

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    result = {"rank": rank, "collectives": collectives(rank)}
    batch = torch.empty(32, 1024, device="cuda")
    train(nn.parallel.DistributedDataParallel(nn.Linear(1024, 1024).cuda(), device_ids=[rank]), batch)
    layers = nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(4)]).cuda()
    for layer in layers:
        fully_shard(layer)
    fully_shard(layers)
    result["local_elements"] = sum(parameter.to_local().numel() for parameter in layers.parameters())
    train(layers, batch)
    result["peak_allocated"] = torch.cuda.max_memory_allocated()
    result["peak_reserved"] = torch.cuda.max_memory_reserved()
    print(json.dumps(result))
    dist.destroy_process_group()


main() if "RANK" in os.environ else launch(__file__)
