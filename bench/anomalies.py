"""How fast check_tensors and GradientMonitor read a device's memory, beside a copy within the device.

    python bench/anomalies.py [--gib 12] [--rounds 15] [--json FILE]

The tensors have the shapes of a Llama with 7 billion parameters, as many layers as fit into --gib. All ways take turns in one process,
because devices drift; medians over the rounds, with quartiles. A copy of N bytes within the device moves 2 N. `pass` is the fused
pass alone, from its first kernel to its last by the device's own clock; `call` is the whole call by the host's clock, names and
results included. It fails where the pass reaches less than 70% of the copy's bandwidth, memory is left behind, or the current
device has changed.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import tidemark
import torch
from tidemark.model_analysis.fused import start_norms

HIDDEN, INNER, WORDS = 4096, 11008, 32000


def llama_shapes(count):
    """Of embedding and head, then of layers, up to so many elements."""
    layer = [(HIDDEN, HIDDEN)] * 4 + [(INNER, HIDDEN)] * 2 + [(HIDDEN, INNER)] + [(HIDDEN,)] * 2
    shapes = [(WORDS, HIDDEN)] * 2
    while sum(math.prod(shape) for shape in shapes + layer) <= count and len(shapes) < 2 + 32 * len(layer):
        shapes += layer
    return shapes


def by_device(work):
    """Seconds between the work's first kernel and its last."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    kept = work()  # results live until the device is done
    end.record()
    torch.cuda.synchronize()
    del kept
    return begin.elapsed_time(end) / 1e3


def by_host(work):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def extra_memory(work):
    """Bytes that are held during the work at most, and after it, beyond those before; and of segments after it."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    work()
    torch.cuda.synchronize()
    return {
        "peak_extra_bytes": torch.cuda.max_memory_allocated() - before,
        "left_allocated_bytes": torch.cuda.memory_allocated() - before,
        "left_reserved_bytes": torch.cuda.memory_reserved() - reserved,
    }


def measure(dtype, gib, rounds):
    width = torch.empty((), dtype=dtype).element_size()
    model = torch.nn.ParameterList()
    for shape in llama_shapes(int(gib * 2**30) // width):
        model.append(torch.nn.Parameter(torch.empty(shape, dtype=dtype, device="cuda").uniform_(-1, 1)))
    parameters = [parameter.detach() for parameter in model]
    size = sum(tensor.numel() * width for tensor in parameters)
    for parameter in model:
        parameter.grad = parameter.detach()  # the same memory: what is read is what counts
    monitor = tidemark.GradientMonitor(model, log=False)
    source = torch.empty(min(size // 2, 4 << 30), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    extra = extra_memory(lambda: tidemark.check_tensors(model, log=False))  # the first call: nothing is cached for it yet
    ways = {
        "copy within the device": (by_device, lambda: target.copy_(source), 2 * source.numel()),
        "check_tensors, pass": (by_device, lambda: start_norms(parameters, math.inf), size),
        "check_tensors, call": (by_host, lambda: tidemark.check_tensors(model, log=False), size),
        "gradients, pass": (by_device, lambda: start_norms(parameters, 2), size),
        "gradients, call": (by_host, monitor.record, size),
    }
    rates = {name: [] for name in ways}
    for turn in range(rounds + 2):
        for name, (clock, work, moved) in ways.items():
            seconds = clock(work)
            if turn >= 2:  # the first ones load kernels
                rates[name].append(moved / seconds / 1e9)
    result = {"dtype": str(dtype), "tensors": len(parameters), "bytes": size, "memory": extra}
    result["gb_per_s"] = {name: statistics.quantiles(values, n=4) for name, values in rates.items()}
    copy = result["gb_per_s"]["copy within the device"][1]
    result["share_of_copy"] = {name: quartiles[1] / copy for name, quartiles in result["gb_per_s"].items()}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=12.0, help="of parameters, at most (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    torch.cuda.set_device(torch.cuda.device_count() - 1)
    current = torch.cuda.current_device()
    gib = min(args.gib, torch.cuda.mem_get_info()[0] / 2**30 * 0.4)
    results, failed = [], []
    for dtype in (torch.bfloat16, torch.float32):
        result = measure(dtype, gib, args.rounds)
        results.append(result)
        print(f"{result['dtype']}: {result['tensors']} tensors, {result['bytes'] / 1e9:.2f} GB on {torch.cuda.get_device_name()}")
        for name, (low, middle, high) in result["gb_per_s"].items():
            print(f"  {name:24} {middle:8.0f} GB/s ({low:.0f} to {high:.0f})  {result['share_of_copy'][name]:6.1%} of the copy's")
        print("  " + ", ".join(f"{name} {value:,}" for name, value in result["memory"].items()))
        if result["share_of_copy"]["check_tensors, pass"] < 0.7:
            failed.append(f"{result['dtype']}: less than 70% of the copy's bandwidth")
        if result["memory"]["left_allocated_bytes"] or result["memory"]["left_reserved_bytes"] > 2 << 20:
            failed.append(f"{result['dtype']}: memory is left behind")
        torch.cuda.empty_cache()
    if torch.cuda.current_device() != current:
        failed.append("the current device has changed")
    for failure in failed:
        print(f"FAILED: {failure}")
    if args.json:
        args.json.write_text(json.dumps({"torch": torch.__version__, "results": results, "failed": failed}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
