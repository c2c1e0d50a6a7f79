#!/usr/bin/env python3
"""Measures what torch.linalg and torch.fft allocate on a GPU: the workspaces of cuSOLVER, MAGMA and cuFFT among them.

Prints a line of JSON for each call: operation, data type, shape, and the bytes that were requested of PyTorch's allocator while it ran, in
order; a negative size is a freed block. A failed call has the error instead of the list. The first line describes the environment.

    scripts/measure_libraries.py > facts.jsonl                     on a GPU, some minutes
    scripts/measure_libraries.py --only cholesky,qr --sizes 64,96
    tidemark plan --gpu H200 --steps 0 -- scripts/measure_libraries.py --compare facts.jsonl

With --compare, the phantom GPU's results are compared with the facts of a real one (jsonl, or jsonl.gz): for each operation the calls
whose sequence of sizes is equal, and of the others the largest difference in one size.
"""

import argparse
import collections
import gzip
import itertools
import json
import time

import torch

SIZES = (16, 32, 48, 64, 96, 100, 128, 192, 256, 384, 512, 513, 768, 1024, 1536, 2048, 3072, 4096, 5120, 8192)
LENGTHS = (16, 60, 64, 97, 100, 127, 128, 243, 256, 509, 512, 1000, 1009, 1024, 2048, 4096, 4099, 8192, 16384, 32768, 65536, 65537, 1 << 20)
BATCHES = ((), (1,), (4,), (32,))
FFT_BATCHES = ((1,), (8,), (256,))
LARGEST = 1 << 30  # bytes of an input


def positive_definite(x):
    """Hermitian, with eigenvalues near 1."""
    return x @ x.mH / x.shape[-1] + torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)


SQUARE = {
    "cholesky": torch.linalg.cholesky,
    "cholesky_inverse": lambda a: torch.cholesky_inverse(a),
    "cholesky_solve": lambda a: torch.cholesky_solve(a[..., :8], a),
    "eigh": torch.linalg.eigh,
    "eigvalsh": torch.linalg.eigvalsh,
    "inv": torch.linalg.inv,
    "solve": lambda a: torch.linalg.solve(a, a[..., :8]),
    "lu_factor": torch.linalg.lu_factor,
    "ldl_factor": torch.linalg.ldl_factor,
    "det": torch.linalg.det,
    "matrix_exp": torch.linalg.matrix_exp,
    "pinv": torch.linalg.pinv,
    "eig": torch.linalg.eig,
}
ANY = {
    "qr": torch.linalg.qr,
    "qr_complete": lambda a: torch.linalg.qr(a, mode="complete"),
    "qr_r": lambda a: torch.linalg.qr(a, mode="r"),
    "svd": lambda a: torch.linalg.svd(a, full_matrices=False),
    "svd_gesvd": lambda a: torch.linalg.svd(a, full_matrices=False, driver="gesvd"),
    "svd_gesvda": lambda a: torch.linalg.svd(a, full_matrices=False, driver="gesvda"),
    "svdvals": torch.linalg.svdvals,
    "lstsq": lambda a: torch.linalg.lstsq(a, a[..., :1]),
    "householder_product": lambda a: torch.linalg.householder_product(a, a[..., 0, : min(a.shape[-2:])]),
    "ormqr": lambda a: torch.ormqr(a, a[..., 0, : min(a.shape[-2:])], a),
}
FFT = {
    "fft": torch.fft.fft,
    "rfft": torch.fft.rfft,
    "irfft": torch.fft.irfft,
    "fft2": torch.fft.fft2,
    "rfft2": torch.fft.rfft2,
}
REAL = (torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)


def cases(sizes, lengths):
    """(operation, function, data type, shape)"""
    for name, function in SQUARE.items():
        for size, batch, dtype in itertools.product(sizes, BATCHES, (*REAL, torch.complex64)):
            yield name, function, dtype, (*batch, size, size)
    for name, function in ANY.items():
        for size, (tall, wide), batch, dtype in itertools.product(sizes, ((1, 1), (4, 1), (1, 4)), BATCHES, REAL):
            if name in ("ormqr", "householder_product") and wide > tall:
                continue
            yield name, function, dtype, (*batch, size * tall, size * wide)
    for name, function in FFT.items():
        types = (torch.float32, torch.float64) if name.startswith("rfft") else COMPLEX
        for length, batch, dtype in itertools.product(lengths, FFT_BATCHES, types):
            if name.endswith("2"):
                if length <= 4099:
                    yield name, function, dtype, (*batch, length, length)
            else:
                yield name, function, dtype, (*batch, length)


def allocations(function, argument):
    """Bytes allocated and freed in the second run of `function`: permanent memory (handles, plans) exists by then."""
    function(argument)
    torch.cuda.memory._record_memory_history(context=None)
    function(argument)
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    signs = {"alloc": 1, "free_completed": -1}
    return [signs[event["action"]] * event["size"] for event in trace if event["action"] in signs]


def measure(name, function, dtype, shape):
    """The allocations of the call, or its error."""
    try:
        argument = torch.randn(shape, dtype=dtype, device="cuda")
        if name in SQUARE:
            argument = positive_definite(argument)
        return allocations(function, argument)
    except (RuntimeError, ValueError) as error:  # also out of memory
        torch.cuda.memory._record_memory_history(enabled=None)
        return str(error).splitlines()[0]


def read_facts(path):
    """By operation, data type and shape. MAGMA writes its own lines among them."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        facts = [json.loads(line) for line in file if line.startswith("[")]
    return {(name, dtype, *shape): found for name, dtype, shape, found in facts}


def compare(facts, found):
    """Prints a line for each operation of the facts."""
    operations = collections.defaultdict(collections.Counter)
    for key, real in facts.items():
        count = operations[key[0]]
        planned = found.get(key)
        if planned is None:
            continue
        count["calls"] += 1
        if isinstance(real, str) or isinstance(planned, str):
            count["failed"] += 1
        elif real == planned:
            count["equal"] += 1
        elif len(real) != len(planned):
            count["other sequence"] += 1
        else:
            off = max(abs(one - other) for one, other in zip(real, planned))
            count["off, bytes"] = max(count["off, bytes"], off)
    columns = ("calls", "failed", "equal", "other sequence", "off, bytes")
    print(f"{'operation':20}", *(f"{column:>14}" for column in columns))
    for name, count in operations.items():
        print(f"{name:20}", *(f"{count[column]:>14,}" for column in columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="OPERATIONS", help="separated by commas")
    parser.add_argument("--sizes", metavar="NUMBERS", help="of matrices and transforms, instead of the built-in ones")
    parser.add_argument("--seconds", type=float, metavar="NUMBER", help="after which no other call is measured; small inputs come first")
    parser.add_argument("--compare", metavar="FACTS", help="what this printed on a real GPU; the calls in it are made and compared")
    args = parser.parse_args()
    facts = read_facts(args.compare) if args.compare else None
    sizes = [int(size) for size in args.sizes.split(",")] if args.sizes else None
    wanted = set(filter(None, args.only.split(",")))
    device = torch.cuda.get_device_properties(0)
    if facts is None:
        print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "device": device.name, "multiprocessors": device.multi_processor_count}))
    answers = {}
    began = time.monotonic()
    for name, function, dtype, shape in sorted(cases(sizes or SIZES, sizes or LENGTHS), key=lambda case: torch.Size(case[3]).numel()):
        if args.seconds and time.monotonic() - began > args.seconds:
            break
        key = (name, str(dtype).removeprefix("torch."), *shape)
        if (wanted and name not in wanted) or torch.Size(shape).numel() * dtype.itemsize > LARGEST or (facts is not None and key not in facts):
            continue
        answers[key] = measure(name, function, dtype, shape)
        if facts is None:
            print(json.dumps([name, key[1], list(shape), answers[key]]), flush=True)
    if facts is not None:
        compare(facts, answers)


if __name__ == "__main__":
    main()
