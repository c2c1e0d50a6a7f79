#!/usr/bin/env python3
"""Records small PyTorch snapshots with known truth on a GPU, for the tests of the snapshot replay.

    OUT=folder scripts/record_snapshots.py [case...]

Each case runs in its own process, with its allocator settings, and writes CASE.pickle.xz and CASE.truth.json: the
allocator's own counters, at their peak and after each step of the run. Trace entries of a step carry its number as
user_metadata, so the counters of a step apply just before the first entry of the next, or a few entries earlier if
something is freed between steps. Cases whose name begins with oom_ run out of memory for a known cause, with Python
stacks; they fill the device, so each runs alone, and their truth contains PyTorch's message and its observer's values.
Needs torch 2.11 or newer with CUDA; no network. Takes about three minutes and writes half a megabyte.
"""

import concurrent.futures
import json
import lzma
import os
import pickle
import random
import subprocess
import sys
import threading

COUNTERS = ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes", "inactive_split_bytes")
GIB = 1 << 30


class Run:
    """Numbers the steps of one case and notes the counters after each."""

    def __init__(self, torch, device=0):
        self.torch, self.device, self.steps, self.random = torch, device, [], random.Random(7)
        self.live = []

    def observe_failures(self):
        """PyTorch's values for observers when it runs out of memory; allowed: the limit, or the device's memory."""
        self.failures = []

        def observer(device, requested, allowed, free):
            stats = self.torch.cuda.memory_stats(device)
            self.failures.append({
                "segment_bytes": requested, "allowed_bytes": allowed, "device_free_bytes": free,
                "total_bytes": self.torch.cuda.mem_get_info(device)[1],
                **{name: stats[f"{name}.all.current"] for name in COUNTERS}})

        self.torch._C._cuda_attach_out_of_memory_observer(observer)

    def fail(self, body, *args):
        count = len(self.failures)
        try:
            body(*args)
        except (self.torch.OutOfMemoryError, RuntimeError) as error:
            for failure in self.failures[count:]:
                failure["message"] = str(error)
        assert len(self.failures) > count, "this was to run out of memory"

    def step(self, body, *args):
        number = str(len(self.steps))
        mark = getattr(self.torch._C, "_cuda_setMemoryMetadata", None)
        if mark:
            mark(number)
        body(*args)
        stats = self.torch.cuda.memory_stats(self.device)
        self.steps.append({"step": number, **{name: stats[f"{name}.all.current"] for name in COUNTERS}})

    def tensor(self, size, device=None):
        device = self.device if device is None else device
        return self.torch.empty(size, dtype=self.torch.uint8, device=f"cuda:{device}")

    def churn(self, count=200, largest=26):
        """Allocates and frees blocks of all sizes from 1 byte to 2**largest, in random order."""
        for _ in range(count):
            if self.live and self.random.random() < 0.5:
                self.live.pop(self.random.randrange(len(self.live)))
            else:
                self.live.append(self.tensor(int(2 ** self.random.uniform(0, largest))))
            if len(self.live) > 60:
                del self.live[: self.random.randrange(60)]

    def train(self):
        """Three optimizer steps of a small MLP with a random batch."""
        torch = self.torch
        if not hasattr(self, "model"):
            layers = [torch.nn.Linear(1024, 3000), torch.nn.GELU(), torch.nn.Linear(3000, 1024)]
            self.model = torch.nn.Sequential(*layers).to(f"cuda:{self.device}")
            self.optimizer = torch.optim.AdamW(self.model.parameters())
        for _ in range(3):
            batch = torch.randn(self.random.randrange(1, 2000), 1024, device=f"cuda:{self.device}")
            self.model(batch).square().mean().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


def mixed(run):
    for _ in range(12):
        run.step(run.churn)
        run.step(run.train)


def limited(run, gib):
    total = run.torch.cuda.get_device_properties(run.device).total_memory
    run.torch.cuda.set_per_process_memory_fraction(gib * GIB / total, run.device)


def garbage_collection(run):
    limited(run, 3)
    mixed(run)
    for _ in range(6):
        run.step(run.churn, 100, 28)


def out_of_memory(run):
    limited(run, 1)

    def overflow():
        kept = []
        try:
            while True:
                run.churn(20, 24)
                kept.append(run.tensor(run.random.randrange(1 << 20, 200 << 20)))
        except run.torch.OutOfMemoryError:
            pass

    for _ in range(2):
        run.step(run.churn, 200, 24)
        run.step(overflow)
    run.step(run.churn, 200, 24)


def empty_cache(run):
    for _ in range(5):
        run.step(run.churn)
        run.step(run.train)
        run.step(run.torch.cuda.empty_cache)
    run.live.clear()
    run.step(run.torch.cuda.empty_cache)
    run.step(run.churn)


def streams(run):
    torch = run.torch
    others = [torch.cuda.Stream() for _ in range(3)]

    def across():
        for _ in range(60):
            stream = run.random.choice(others)
            with torch.cuda.stream(stream):
                block = run.tensor(int(2 ** run.random.uniform(8, 26)))
                torch.cuda._sleep(200_000)
            block.record_stream(run.random.choice(others + [torch.cuda.current_stream()]))
            if run.random.random() < 0.3:
                run.live.append(block)
            del block
        del run.live[: len(run.live) // 2]

    for _ in range(8):
        run.step(across)
        run.step(run.train)
    run.step(torch.cuda.empty_cache)


def private_pools(run):
    torch = run.torch
    run.step(run.train)
    still = torch.randn(512, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run.step(lambda: [run.model(still) for _ in range(3)])
    torch.cuda.current_stream().wait_stream(side)
    graphs = []

    def capture():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            graphs.append((graph, run.model(still)))

    def in_pool(pool):
        with torch.cuda.use_mem_pool(pool):
            run.live += [run.tensor(run.random.randrange(1, 30 << 20)) for _ in range(12)]
        del run.live[::2]

    pool = torch.cuda.MemPool()
    for _ in range(4):
        run.step(capture)
        run.step(in_pool, pool)
        run.step(run.churn)
        graphs[-1][0].replay()
    torch.cuda.synchronize()
    run.step(restore_checkpoint, run, torch, graphs[0][0].pool())
    graphs.pop()
    run.step(torch.cuda.empty_cache)
    run.step(run.churn)
    run.kept = (graphs, pool)


def restore_checkpoint(run, torch, pool_id):
    """Like torch.compile's graph trees between recordings: puts a private pool back into an earlier state."""
    state = torch._C._cuda_getCheckpointState(run.device, pool_id)
    try:
        torch._C._cuda_setCheckpointPoolState(run.device, state, [], [])
    except RuntimeError as error:
        print("checkpoint:", error)


def unsplit_pool(run):
    pool = run.torch.cuda.MemPool(no_split=True)

    def in_pool():
        with run.torch.cuda.use_mem_pool(pool):
            run.live += [run.tensor(run.random.randrange(1, 30 << 20)) for _ in range(10)]
        del run.live[::2]

    for _ in range(6):
        run.step(in_pool)
        run.step(run.churn)
    run.kept = pool


def late(run):
    """History is switched on when blocks are alive already, and keeps only the last entries."""
    run.churn(600)
    run.train()
    run.torch.cuda.memory._record_memory_history(context=None, max_entries=3000)
    mixed(run)


def toggled(run):
    for settings in ("expandable_segments:True", "expandable_segments:False", "expandable_segments:True"):
        run.step(run.churn)
        run.torch.cuda.memory._set_allocator_settings(settings)
        run.step(run.train)
        run.step(run.churn)


def threads(run):
    runs = [Run(run.torch) for _ in range(4)]

    def work():
        workers = [threading.Thread(target=one.churn, args=(150,)) for one in runs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    for _ in range(6):
        run.step(work)
    run.kept = runs


def devices(run):
    other = Run(run.torch, device=1)
    for _ in range(6):
        run.step(run.train)
        run.step(other.train)
        run.step(lambda: (run.churn(), other.churn()))
    run.kept = other


# Out-of-memory cases, each with one cause.


def load_weights(run, gib):
    run.live.append(run.torch.empty(gib * GIB, dtype=run.torch.uint8, device="cuda"))


def forward(run, size):
    run.live.append(run.torch.empty(size, dtype=run.torch.uint8, device="cuda"))


def fill(run):
    size = run.torch.cuda.mem_get_info(run.device)[0] - (400 << 20)
    run.live.append(run.torch.empty(size, dtype=run.torch.uint8, device="cuda"))


def free_gib(run):
    return run.torch.cuda.mem_get_info(run.device)[0] // GIB


def oom_demand(run):
    """Live blocks and the request need more than the device has."""
    gib = free_gib(run)
    load_weights(run, gib * 6 // 10)
    while gib * 4 // 10 - len(run.live) > 2:
        forward(run, GIB - (100 << 20))
    run.fail(forward, run, 12 * GIB + 1)


def oom_retried(run):
    """The same, and the program tries smaller batches, the last one twice."""
    load_weights(run, free_gib(run) * 9 // 10)
    for gib in (32, 24, 16, 16):
        run.fail(forward, run, gib * GIB)


def oom_limit(run):
    """A limit of 2 GiB; the device is nearly empty."""
    limited(run, 2)
    load_weights(run, 1)
    for _ in range(3):
        forward(run, 200 << 20)
    run.fail(forward, run, 600 << 20)


def leave_holes(run):
    """Fills the device with segments of 2 GiB that are free except for 64 MiB at their beginning."""
    fillers = []
    while free_gib(run) >= 3:
        whole = run.tensor(2 * GIB)
        del whole
        forward(run, 64 << 20)
        fillers.append(run.tensor((2 << 30) - (64 << 20)))
    fill(run)


def oom_fragmentation(run):
    leave_holes(run)
    run.fail(forward, run, 4 * GIB)


def oom_fragmentation_expandable(run):
    """Expandable segments release only whole handles of 20 MiB."""
    leave_holes(run)
    cached = run.torch.cuda.memory_reserved(run.device) - run.torch.cuda.memory_allocated(run.device)
    run.fail(forward, run, run.torch.cuda.mem_get_info(run.device)[0] + cached - (100 << 20))


def oom_other_stream(run):
    with run.torch.cuda.stream(run.torch.cuda.Stream()):
        leave_holes(run)
    run.fail(forward, run, 1800 << 20)


def oom_private_pool(run):
    """Half of the device is cached by a memory pool of the program's own, which is now unused."""
    gib = free_gib(run)
    run.kept = run.torch.cuda.MemPool()
    with run.torch.cuda.use_mem_pool(run.kept):
        cached = [run.tensor(gib // 4 * GIB) for _ in range(2)]
        del cached
    load_weights(run, gib // 4)
    run.fail(forward, run, gib // 2 * GIB)


def oom_capture(run):
    """While a graph is captured, cached memory is not released."""
    torch = run.torch
    gib = free_gib(run)
    load_weights(run, gib // 2)

    def capture():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            run.live.clear()
            forward(run, gib * 3 // 4 * GIB)

    run.fail(capture)


def oom_leak(run):
    """Training steps that each keep an unneeded tensor."""
    torch = run.torch
    load_weights(run, free_gib(run) * 6 // 10)
    model = torch.nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    history = []

    def remember_loss():
        history.append(torch.empty(1200 << 20, dtype=torch.uint8, device="cuda"))

    def train_step():
        batch = torch.randn(256, 1024, device="cuda")
        model(batch).square().mean().backward()
        remember_loss()
        optimizer.step()
        optimizer.zero_grad()

    def train_steps():
        while True:
            train_step()

    run.fail(train_steps)


OTHER = """
import sys, torch
kept = torch.empty(int(sys.argv[1]), dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.read()
"""


def oom_other_process(run):
    """Another process takes memory that this one had before and released."""
    half = free_gib(run) // 2 * GIB
    load_weights(run, half // GIB)
    run.live.clear()
    run.torch.cuda.empty_cache()
    load_weights(run, 4)
    other = subprocess.Popen([sys.executable, "-c", OTHER, str(half + half // 2)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    run.fail(forward, run, half)
    other.communicate()


CASES = {
    "default": ("", mixed),
    "roundup_4": ("roundup_power2_divisions:4", mixed),
    "roundup_by_size": ("roundup_power2_divisions:[1:2,4:4,16:8,>:16]", mixed),
    "max_split_32": ("max_split_size_mb:32", mixed),
    "max_split_32_expandable": ("max_split_size_mb:32,expandable_segments:True", mixed),
    "garbage_collection": ("garbage_collection_threshold:0.6", garbage_collection),
    "garbage_collection_roundup": ("garbage_collection_threshold:0.4,roundup_power2_divisions:2", garbage_collection),
    "out_of_memory": ("", out_of_memory),
    "out_of_memory_expandable": ("expandable_segments:True", out_of_memory),
    "out_of_memory_max_split": ("max_split_size_mb:21", out_of_memory),
    "empty_cache": ("", empty_cache),
    "empty_cache_expandable": ("expandable_segments:True", empty_cache),
    "streams": ("", streams),
    "streams_expandable": ("expandable_segments:True", streams),
    "private_pools": ("", private_pools),
    "private_pools_expandable": ("expandable_segments:True", private_pools),
    "unsplit_pool": ("", unsplit_pool),
    "late": ("", late),
    "late_expandable": ("expandable_segments:True", late),
    "late_roundup": ("roundup_power2_divisions:4", late),
    "late_max_split": ("max_split_size_mb:32", late),
    "toggled": ("", toggled),
    "threads": ("", threads),
    "devices": ("", devices),
    "oom_demand": ("", oom_demand),
    "oom_retried": ("", oom_retried),
    "oom_limit": ("", oom_limit),
    "oom_fragmentation": ("", oom_fragmentation),
    "oom_fragmentation_expandable": ("expandable_segments:True", oom_fragmentation_expandable),
    "oom_other_stream": ("", oom_other_stream),
    "oom_private_pool": ("", oom_private_pool),
    "oom_capture": ("", oom_capture),
    "oom_leak": ("", oom_leak),
    "oom_other_process": ("", oom_other_process),
}


def shorten_paths(snapshot):
    """Removes the folders of this machine from the frames, which are shared objects."""
    lists = [entry.get("frames", ()) for trace in snapshot["device_traces"] for entry in trace]
    for segment in snapshot["segments"]:
        lists += [segment.get("frames", ())] + [block.get("frames", ()) for block in segment["blocks"]]
    for frame in {id(frame): frame for frames in lists for frame in frames}.values():
        before, package, rest = frame["filename"].rpartition("site-packages/")
        frame["filename"] = package + rest if package else os.path.basename(frame["filename"])


def record(case, out):
    conf, body = CASES[case]
    import torch

    if body is devices and torch.cuda.device_count() < 2:
        print("needs two devices, left out")
        return
    torch.cuda.init()
    with_stacks = case.startswith("oom_")
    if body is not late:
        torch.cuda.memory._record_memory_history(context="all" if with_stacks else None, stacks="python")
    run = Run(torch)
    run.observe_failures()
    body(run)
    snapshot = torch.cuda.memory._snapshot()
    stats = torch.cuda.memory_stats()
    shorten_paths(snapshot)
    with lzma.open(os.path.join(out, f"{case}.pickle.xz"), "wb", preset=9 | lzma.PRESET_EXTREME) as file:
        pickle.dump(snapshot, file)
    truth = {"kind": case, "conf": conf, "torch": torch.__version__, "complete": body is not late,
             "peak": {name: stats[f"{name}.all.peak"] for name in COUNTERS},
             "retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"], "steps": run.steps}
    if with_stacks:
        truth["failures"] = run.failures
    with open(os.path.join(out, f"{case}.truth.json"), "w") as file:
        json.dump(truth, file)


def record_apart(case, out):
    environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=CASES[case][0])
    command = [sys.executable, os.path.abspath(__file__), "--one", case]
    result = subprocess.run(command, env=dict(environment, OUT=out), capture_output=True, text=True)
    return case, result.returncode, (result.stdout + result.stderr)[-600:]


def main():
    out = os.environ.get("OUT", ".")
    if sys.argv[1:2] == ["--one"]:
        record(sys.argv[2], out)
        return 0
    os.makedirs(out, exist_ok=True)
    cases = sys.argv[1:] or list(CASES)
    alone = [case for case in cases if case.startswith("oom_")]
    failed = 0
    for group, at_once in (([case for case in cases if case not in alone], 6), (alone, 1)):
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for case, status, output in pool.map(lambda case: record_apart(case, out), group):
                path = os.path.join(out, f"{case}.pickle.xz")
                size = os.path.getsize(path) if os.path.exists(path) else 0
                print(f"{case}: {'ok' if status == 0 else 'FAILED'}, {size} bytes {output}".rstrip(), flush=True)
                failed += status != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
