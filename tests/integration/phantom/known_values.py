"""Values that decide sizes or branches, on small tensors: prints what a program sees on the device, and on the CPU."""

import json
import sys

import torch
import torch.utils.flop_counter


def cases(device):
    """(name, what the program reads)"""
    put = lambda *values, **options: torch.tensor(*values, **options).to(device)  # noqa: E731
    generator = torch.Generator().manual_seed(7)
    host = torch.randn(6, 10, generator=generator)
    x = host.to(device)
    labels = torch.randint(-2, 5, (40,), generator=generator).to(device)
    mask = (torch.rand(6, 10, generator=generator) > 0.4).to(device)

    yield "nonzero", [*mask.nonzero().shape, *(labels >= 0).nonzero().flatten().tolist()]
    yield "nonzero as tuple", [index.tolist() for index in mask.nonzero(as_tuple=True)]
    yield "where", [index.tolist() for index in torch.where(x > 0)]
    yield "unique", [part.tolist() for part in labels.unique(return_inverse=True, return_counts=True)]
    yield "unique of truth values", [part.tolist() for part in mask.unique(return_counts=True)]
    yield "unique of one truth value", (mask | ~mask).unique().tolist()
    yield "unique_consecutive", [part.tolist() for part in labels.unique_consecutive(return_counts=True)]
    yield "masked_select", x.masked_select(mask).tolist()
    yield "x[mask]", x[mask].tolist()
    yield "x[:, columns]", x[:, mask[0]].shape
    yield "bincount", torch.bincount(labels + 2).tolist()
    yield "histc", torch.histc(x, 5).shape
    yield "repeat_interleave", torch.arange(5, device=device).repeat_interleave(put([3, 0, 2, 1, 4])).tolist()
    yield "argmax", [x.argmax().item(), x.argmin(1).tolist(), x.max(1).indices.tolist()]
    yield "any, all", [bool((labels > 3).any()), bool((labels > -9).all()), bool((labels == 0).all()), bool(x.isnan().any())]
    yield "equal", [torch.equal(x, x.clone()), torch.equal(x, x + 1), torch.allclose(x, x + 1e-12)]
    yield "min, max", [labels.min().item(), labels.max().item(), int(labels.aminmax().max)]
    yield "assert", [bool(labels.min() >= -2 and labels.max() < 5)]
    yield "sums", [int(mask.sum()), mask.sum(1).tolist(), int((labels >= 0).sum()), (labels != -2).cumsum(0).tolist()]
    yield "sort, topk", [labels.sort().values.tolist(), labels.argsort(stable=True).tolist(), labels.topk(3).values.tolist()]
    yield "one_hot", torch.nn.functional.one_hot(labels.clamp(min=0)).shape
    yield "searchsorted", torch.searchsorted(put([1, 3, 5]), put([0, 3, 9])).tolist()
    yield "isin", torch.isin(labels, put([0, 1])).tolist()
    yield "lengths", [torch.arange(8, device=device)[None].lt(put([3, 8, 1])[:, None]).sum(1).tolist()]
    yield "scatter", torch.zeros(5, dtype=torch.long, device=device).scatter_add_(0, labels.clamp(min=0), torch.ones_like(labels)).tolist()
    yield "split by sizes", [part.shape for part in x.split([int(n) for n in put([1, 2, 3])])]
    yield "cat, stack", torch.stack([torch.cat([labels[:3], labels[-2:]]), labels[5:10]]).tolist()
    yield "views", [x.t()[2:4].flatten().tolist(), x[::2, 1::3].tolist(), labels.view(8, 5).permute(1, 0)[3].tolist()]

    pairs = torch.arange(60000, device=device).view(200, 150, 2)
    pairs[..., 1] -= pairs[..., 0]
    x = x.clone()
    x[:, 2:] += x[:, :-2].clone()
    x[0] = x[0]
    yield "in place on itself", x.tolist()
    yield "scattered views", [(pairs[..., 0] % 7 == 0).nonzero().shape, int(pairs[..., 1].sum())]

    y = torch.arange(12, device=device).view(3, 4)
    y[:, 1] = 7
    y[0].add_(10)
    y += put([1, 2, 3, 4])
    y[y > 12] = -1
    y.t()[3].mul_(2)
    yield "in place", y.tolist()
    y.masked_fill_(y < 0, 100).clamp_(max=50)
    yield "in place again", [y.tolist(), int((y == 50).sum())]
    counters = [put([1, 2]), put([3.5]), put([True, False])]
    torch._foreach_add_(counters[:2], 2)
    torch._foreach_mul_(counters[:2], 3)
    yield "lists in place", [counter.tolist() for counter in counters]
    out = torch.empty(0, dtype=torch.long, device=device)
    torch.add(y, 1, out=out)
    torch.mul(out, 2, out=out)
    yield "out=", out.tolist()
    into = torch.zeros(4, 6, device=device)
    into[:, ::2] = torch.ones(4, 3)
    into[1].copy_(torch.arange(6))
    yield "partly from the host", into.tolist()
    yield "to other types", [x.half().double().gt(0).sum().item(), labels.to(torch.int32).float().cpu().tolist()]
    yield "casts on the way", torch.arange(4).to(device, torch.float64).tolist()

    w = torch.ones(6, 10, device=device, requires_grad=True)
    chosen = w[mask]
    chosen.sum().backward()
    yield "gradient of a mask", [chosen.shape, w.grad.nonzero().shape, int(w.grad.sum())]
    with torch.no_grad():
        yield "no_grad", (x * 2)[mask].shape
    with torch.inference_mode():
        yield "inference_mode", x[mask].shape
    yield "vmap", torch.vmap(lambda row: row.gt(0).sum())(x).tolist()
    yield "functional gradient", torch.func.grad(lambda v: (v * v).sum())(put([1.0, 2.0])).tolist()
    with torch.utils.flop_counter.FlopCounterMode(display=False) as flops:
        yield "another mode", [labels.gt(0).nonzero().shape, flops.get_total_flops()]
    yield "a step count", [int(put(0).add_(1).add_(1)), (put(3.0) % 2 == 1).item()]
    while_ = put(0)
    while bool(while_ < 5):
        while_ += 1
    yield "a loop", while_.item()
    yield "formatting", str(labels[:3].cpu())


def shapes_of_random_values(device):
    """Of device generators: only what does not depend on the values."""
    torch.manual_seed(1)
    permuted = torch.randperm(50, device=device)
    chances = torch.rand(4000, device=device)
    steps = torch.randint(0, 1000, (64,), device=device)
    return {
        "randperm": sorted(permuted.tolist()) == list(range(50)),
        "rand": 0.4 < float((chances > 0.5).float().mean()) < 0.6,
        "randint": bool(steps.min() >= 0 and steps.max() < 1000 and steps.max() > steps.min()),
        "randn": 0.8 < float(torch.randn(4000, device=device).std()) < 1.2,
        "bernoulli": 300 < torch.full((4000,), 0.1, device=device).bernoulli().nonzero().size(0) < 500,
        "half of a mask": 1800 < chances[chances > 0.5].numel() < 2200,
        "the generator of the CPU": torch.rand(3).tolist() == torch.rand(3, generator=torch.Generator().manual_seed(1)).tolist(),
    }


def checks_of_unknown_values():
    """They count as zeros."""
    unknown = torch.randn(3000, 3000, device="cuda").argmax(0)
    return {
        "range": bool(unknown.min() >= 0 and unknown.max() < 3000),
        "all in range": bool((unknown >= 0).all()),
        "not above": not bool(unknown.max() > 5),
        "many": bool((unknown == unknown[0]).all()),
        "none": unknown.max().item() == 0,
    }


torch.zeros(1, device="cuda")
plain = {name: json.loads(json.dumps(value)) for name, value in cases("cpu")}
seen = {name: json.loads(json.dumps(value)) for name, value in cases("cuda")}
wrong = {name: [seen[name], plain[name]] for name in plain if seen[name] != plain[name]}
random, unknown = shapes_of_random_values("cuda"), checks_of_unknown_values()
wrong |= {name: False for name, right in (random | unknown).items() if not right}
print(json.dumps({"right": len(plain) - len(wrong), "wrong": wrong}), file=sys.stderr)
