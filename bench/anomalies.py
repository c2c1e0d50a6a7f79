"""Speed at which check_tensors and GradientMonitor read a device's memory, compared with a copy within the device.

    python bench/anomalies.py [--gib 12] [--rounds 15] [--json FILE]

The tensors have the shapes of a Llama with 7 billion parameters, as many layers as fit into --gib. All ways take turns in one process,
because devices drift; medians over the rounds, with quartiles. A copy of N bytes within the device moves 2 N. `pass` is the fused
pass alone, from its first kernel to its last by the device's own clock; `call` is the whole call by the host's clock, names and
results included; `PyTorch's norm, pass` is used without our own kernels, and for other types. Before
anything is timed, norms are compared with those of the CPU. It fails if they differ or our kernels do not compile, the pass
reaches less than 70% of the copy's bandwidth, memory is left behind, or the current device has changed.
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
from tidemark.model_analysis import fused, fused_kernel
from tidemark.model_analysis.fused import start_norms

HIDDEN, INNER, WORDS = 4096, 11008, 32000
#: Numbers of elements: around the sizes of loads, blocks and pieces; one large enough for our own kernels.
SIZES = [0, 1, 7, 8, 9, 15, 255, 2047, 2049, 8191, 8200, 65535, 65536, 65537, 131_073, 300_001, (1 << 25) + 5]


def llama_shapes(count):
    """Shapes of embedding and head, then of layers, up to this many elements."""
    layer = [(HIDDEN, HIDDEN)] * 4 + [(INNER, HIDDEN)] * 2 + [(HIDDEN, INNER)] + [(HIDDEN,)] * 2
    shapes = [(WORDS, HIDDEN)] * 2
    while sum(math.prod(shape) for shape in shapes + layer) <= count and len(shapes) < 2 + 32 * len(layer):
        shapes += layer
    return shapes


def checked_tensors(dtype):
    """By name: tensors of all sizes, with planted values; enough for several launches."""
    largest = torch.finfo(dtype).max
    found = {}
    for size in SIZES:
        plain = torch.randn(size, device="cuda").to(dtype)
        found[f"{size} values"] = plain
        if size > 1 << 20:
            found[f"{size} values, NaN at the end"] = torch.cat([plain[:-1], plain.new_full((1,), math.nan)])
            continue
        for value in (math.nan, -math.nan, math.inf, -math.inf, largest, -largest):
            for place in sorted({0, size // 2, size - 1}) if size else ():
                spoiled = plain.clone()
                spoiled[place] = value
                found[f"{size} values, {value} at {place}"] = spoiled
        if size > 1:
            both = plain.clone()
            both[0], both[-1] = math.inf, math.nan
            found[f"{size} values, infinity and NaN"] = both
        found[f"{size} zeros"] = torch.zeros_like(plain)
        bits = torch.randint(0, 64, (size,), device="cuda", dtype=torch.int16)
        found[f"{size} denormals"] = torch.where(bits % 2 == 0, bits, bits | -(2**15)).view(dtype)
        found[f"{size} values, not aligned"] = torch.randn(size + 3, device="cuda").to(dtype)[3:]
        found[f"{size} values, every other"] = torch.randn(2 * size, device="cuda").to(dtype)[::2]
    found["transposed"] = torch.randn(33, 65, device="cuda").to(dtype).t()
    return found


def norm_by_cpu(tensor, order):
    values = tensor.cpu().double().abs()
    if values.numel() == 0:
        return 0.0
    if order == math.inf:
        return values.amax().item()
    squares = values.square().sum().item()
    return math.inf if squares > torch.finfo(torch.float32).max else math.sqrt(squares)


def same(found, expected, order):
    if math.isnan(expected) or math.isinf(expected) or order == math.inf:
        return found == expected or (math.isnan(found) and math.isnan(expected))
    return math.isclose(found, expected, rel_tol=1e-5, abs_tol=1e-18)  # squares of smaller values are below float32


def wrong_norms(dtype, order):
    """Differences from the CPU's norms, in words; or why our kernels do not work here."""
    device = torch.device("cuda", torch.cuda.current_device())
    short = str(dtype).rpartition(".")[2]
    begin = time.perf_counter()
    try:
        kernels = fused_kernel.compiled(torch, device, short, order)
        compiling = time.perf_counter() - begin
        fused_kernel.norms(torch, kernels, [torch.ones(8, dtype=dtype, device=device)], torch.zeros(1, device=device))
        torch.cuda.synchronize()
    except Exception as problem:  # any exception is printed
        return [f"{short}, order {order}: our kernels do not work: {type(problem).__name__}: {problem}"]
    tensors = checked_tensors(dtype)
    found = fused.norms(list(tensors.values()), order)
    if fused_kernel._kernels.get((device.index, short, order)) is None:
        return [f"{short}, order {order}: our kernels were not used"]
    wrong = []
    for (name, tensor), norm in zip(tensors.items(), found):
        expected = norm_by_cpu(tensor, order)
        if not same(norm, expected, order):
            wrong.append(f"{short}, order {order}, {name}: norm {norm}, by the CPU {expected}")
    print(f"{short}, order {order}: {len(tensors)} norms, {len(wrong)} of them wrong; compiled in {compiling * 1e3:.0f} ms")
    return wrong[:8]


def by_device(work):
    """Seconds between the first and the last kernel."""
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
    """Peak extra bytes during the work, and extra bytes and segments after it."""
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


def by_pytorch(tensors):
    batches = fused._batches(tensors, list(range(len(tensors))))
    return [fused._norms_of(torch, [tensors[index] for index in batch], math.inf) for batch in batches]


def measure(dtype, gib, rounds):
    width = torch.empty((), dtype=dtype).element_size()
    model = torch.nn.ParameterList()
    for shape in llama_shapes(int(gib * 2**30) // width):
        model.append(torch.nn.Parameter(torch.empty(shape, dtype=dtype, device="cuda").uniform_(-1, 1)))
    parameters = [parameter.detach() for parameter in model]
    size = sum(tensor.numel() * width for tensor in parameters)
    for parameter in model:
        parameter.grad = parameter.detach()  # the same memory: only reads count
    monitor = tidemark.GradientMonitor(model, log=False)
    source = torch.empty(min(size // 2, 4 << 30), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    extra = extra_memory(lambda: tidemark.check_tensors(model, log=False))  # the first call: nothing is cached yet
    ways = {
        "copy within the device": (by_device, lambda: target.copy_(source), 2 * source.numel()),
        "check_tensors, pass": (by_device, lambda: start_norms(parameters, math.inf), size),
        "PyTorch's norm, pass": (by_device, lambda: by_pytorch(parameters), size),
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
    for dtype in (torch.bfloat16, torch.float16):
        for order in (math.inf, 2.0):
            failed += wrong_norms(dtype, order)
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
