"""StepGuard: its cost for a step, and jobs with rare long batches with and without it.

    PYTHONPATH=build/release/python python bench/step_guard.py cost [--rounds 40] [--json FILE]
    PYTHONPATH=build/release/python torchrun --nproc-per-node 2 bench/step_guard.py cost
    build/release/bin/tidemark plan --steps 0 --gpu H200 -- python bench/step_guard.py jobs [--seeds 100 101 102] [--json FILE]

cost   Loops over batches of token ids whose steps do nothing, guarded and plain in turns in one process. With several ranks, the
       all-reduce alone takes turns, too: the last lines are what the guard costs beside it, in time and in processor time of its
       thread. On a CUDA device with its counters.
jobs   Trains a small transformer on batches of 8 texts, padded to the longest one, on the GPU that there is, or a simulated one.
       The limit of memory is what a batch needs that 2% of the batches are longer than. The same batches run in a plain loop,
       which drops a batch that runs out of memory, and with a StepGuard. Lengths are log-normal with the median and the 90%
       quantile of the tokens of three corpora, from memory of "Big Bird: Transformers for Longer Sequences"
       (arXiv:2007.14062), times --scale. Seeds below 100 were used to choose the guard's constants; report others.
"""

import argparse
import json
import math
import os
import pathlib
import random
import statistics
import sys
import time

import tidemark
import torch
from torch import nn

# Median and 90% quantile of the tokens of a text.
CORPORA = {"arXiv": (6151, 14405), "PubMed": (2715, 6101), "BigPatent": (3082, 7693)}
SAMPLES = 8
LONG_SHARE = 0.02
MIB = 1 << 20


class Layer(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, query, key, value):
        if self.fused:
            return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return scores.softmax(dim=-1) @ value

    def forward(self, x):
        samples, length, width = x.shape
        parts = self.inputs(self.norms[0](x)).view(samples, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.output(self.attend(*parts).transpose(1, 2).reshape(samples, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Model(nn.Module):
    def __init__(self, fused, width=512, layers=6, heads=8, vocabulary=8192):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.Sequential(*(Layer(width, heads, fused) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary)

    def loss(self, tokens):
        logits = self.head(self.layers(self.embedding(tokens)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def spread(corpus):
    median, ninth = CORPORA[corpus]
    return math.log(median), math.log(ninth / median) / statistics.NormalDist().inv_cdf(0.9)


def lengths(corpus, seed, steps, scale):
    """Of the longest text of each batch."""
    draw = random.Random(f"{corpus} {seed}")
    mean, deviation = spread(corpus)
    return [max(16, round(scale * max(draw.lognormvariate(mean, deviation) for _ in range(SAMPLES)))) for _ in range(steps)]


def long_length(corpus, scale):
    """The length that LONG_SHARE of the batches exceed."""
    mean, deviation = spread(corpus)
    return round(scale * math.exp(mean + deviation * statistics.NormalDist().inv_cdf((1 - LONG_SHARE) ** (1 / SAMPLES))))


class Job:
    def __init__(self, corpus, fused, seed, options):
        self.name = {"corpus": corpus, "attention": "fused" if fused else "eager", "seed": seed}
        self.fused = fused
        self.sizes = lengths(corpus, seed, options.steps, options.scale)
        self.longest = long_length(corpus, options.scale)
        self.total = torch.cuda.get_device_properties(0).total_memory

    def make(self):
        torch.manual_seed(0)
        model = Model(self.fused).to("cuda", torch.bfloat16)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-4)

    def batch(self, length):
        return torch.randint(0, 8192, (SAMPLES, length)).cuda()

    def limit(self):
        """Bytes that the allocator takes for a batch of the long length, after one that makes optimizer state."""
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
        model, optimizer = self.make()
        for length in (64, self.longest):
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            model.loss(self.batch(length)).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return torch.cuda.max_memory_reserved()

    def run(self, limit, guarded):
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(limit / self.total)
        model, optimizer = self.make()
        guard = tidemark.StepGuard(model) if guarded else None
        failed, decisions = [], []
        torch.cuda.synchronize()
        began = time.perf_counter()
        for step, length in enumerate(self.sizes):
            batch = self.batch(length)
            try:
                if guard is None:
                    model.loss(batch).backward()
                else:
                    for part in guard.parts(batch):
                        (model.loss(part.batch) * part.weight).backward()
            except torch.cuda.OutOfMemoryError:
                failed.append(step)
            else:
                optimizer.step()
            if guard is not None:
                decisions.append((guard.decision.action, guard.decision.parts))
            optimizer.zero_grad(set_to_none=True)
            if failed and failed[-1] == step:
                torch.cuda.empty_cache()
        torch.cuda.synchronize()
        emptied = 0 if guard is None else guard.emptied
        return {"failed": failed, "decisions": decisions, "emptied": emptied, "seconds": time.perf_counter() - began}

    def compare(self):
        limit = self.limit()
        plain, guarded = self.run(limit, False), self.run(limit, True)
        split = [step for step, (action, _) in enumerate(guarded["decisions"]) if action == "split"]
        return {
            **self.name,
            "steps": len(self.sizes),
            "limit_bytes": limit,
            "failed_plain": len(plain["failed"]),
            "failed_guarded": len(guarded["failed"]),
            "split": len(split),
            "split_needlessly": len(set(split) - set(plain["failed"])),
            "skipped": sum(action == "skip" for action, _ in guarded["decisions"]),
            "emptied": guarded["emptied"],
            "passes": sum(parts for _, parts in guarded["decisions"]),
            "seconds_plain": plain["seconds"],
            "seconds_guarded": guarded["seconds"],
            "first_failures_guarded": guarded["failed"][:5],
            "needless": sorted(set(split) - set(plain["failed"]))[:20],
        }


def jobs(options):
    if not torch.cuda.is_available():
        sys.exit("bench/step_guard.py jobs: needs a GPU, such as a simulated one: tidemark plan --steps 0 --gpu H200 -- ...")
    until = time.monotonic() + options.seconds
    found = []
    for seed in options.seeds:
        for corpus in CORPORA:
            for fused in (True, False):
                if time.monotonic() < until:
                    found.append(Job(corpus, fused, seed, options).compare())
                    print(json.dumps(found[-1]), flush=True)
    for attention in ("fused", "eager"):
        rows = [row for row in found if row["attention"] == attention]
        total = {key: sum(row[key] for row in rows) for key in ("steps", "failed_plain", "failed_guarded", "split", "split_needlessly", "skipped", "emptied", "passes")}
        print(f"{attention}: {len(rows)} jobs, {json.dumps(total)}", flush=True)
    return found


class Counted:
    """A device without counters: the step says what it takes."""

    taken = 0

    def allocated(self):
        return 0

    def peak(self):
        return self.taken

    def reset_peak(self):
        pass

    def empty(self):
        pass

    def room(self, needed, emptied):
        return 1 << 50


def cost(options):
    """Medians over the rounds, in microseconds a step."""
    import torch.distributed as dist

    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if ranks > 1:
        dist.init_process_group(options.backend or ("cpu:gloo,cuda:nccl" if cuda else "gloo"))
    model = nn.Linear(8, 8, device="cuda" if cuda else "cpu")
    counted = None if cuda else Counted()
    guard = tidemark.StepGuard(model, memory=counted)
    draw = random.Random(1)
    held = [torch.zeros(1 << 20, device="cuda")] if cuda else []
    batches = []
    for length in lengths("PubMed", 1, options.steps, 0.125):
        tokens = torch.zeros(SAMPLES, length, dtype=torch.int64)
        batches.append({"input_ids": tokens, "attention_mask": tokens, "labels": tokens})

    def step(batch):
        tokens = batch["input_ids"].numel()
        if counted is not None:
            counted.taken = int(1e8 + 1e5 * tokens * draw.uniform(0.995, 1.005))
        else:
            torch.empty(100 * tokens, dtype=torch.uint8, device="cuda")

    def plain():
        for batch in batches:
            step(batch)

    def with_guard():
        for batch in batches:
            for part in guard.parts(batch):
                step(part.batch)

    def ahead():
        for batch in guard.batches(batches):
            for part in guard.parts(batch):
                step(part.batch)

    reduced = torch.zeros(5, dtype=torch.int64, device="cuda" if cuda and options.backend == "nccl" else "cpu")

    def reduce_alone():
        for batch in batches:
            dist.all_reduce(reduced, op=dist.ReduceOp.MAX)
            if reduced.is_cuda:
                reduced.tolist()
            step(batch)

    ways = {"plain": plain, "guarded": with_guard, **({"all-reduce alone": reduce_alone, "guarded ahead": ahead} if ranks > 1 else {})}
    times, work = ({name: [] for name in ways} for _ in range(2))
    for round_number in range(options.rounds + 2):
        for name, way in ways.items():
            began, worked = time.perf_counter(), time.thread_time()
            way()
            if round_number >= 2:
                times[name].append((time.perf_counter() - began) / len(batches) * 1e6)
                work[name].append((time.thread_time() - worked) / len(batches) * 1e6)
    del held
    found = {name: statistics.quantiles(values, n=4) for name, values in times.items()}
    base = "all-reduce alone" if ranks > 1 else "plain"
    for name, measured in (("the guard beside it", times), ("the same, processor", work)):
        found[name] = statistics.quantiles([one - other for one, other in zip(measured["guarded"], measured[base])], n=4)
    if int(os.environ.get("RANK", "0")) == 0:
        print(f"{ranks} ranks, {torch.cuda.get_device_name() if cuda else 'CPU'}, torch {torch.__version__}, {options.backend or 'gloo'}")
        for name, (low, middle, high) in found.items():
            print(f"{name:24}{middle:8.1f} us a step (quartiles {low:.1f} to {high:.1f})")
    if ranks > 1:
        dist.destroy_process_group()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["cost", "jobs"])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102])
    parser.add_argument("--scale", type=float, default=0.125, help="of the lengths")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no job is begun")
    parser.add_argument("--backend", help="of the process group in cost")
    parser.add_argument("--json")
    options = parser.parse_args()
    found = cost(options) if options.what == "cost" else jobs(options)
    if options.json and os.environ.get("RANK", "0") == "0":
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
