"""Compares the conversions of the C++ prefetching loader with PyTorch's kernels on the same elements, bit by bit.

    PYTHONPATH=build/release/python python scripts/gpu_conversions.py [--json FILE]

uint8: all values. float32: every 2**16th bit pattern with all of the upper 16 bits, the neighbours of midpoints between two
numbers of the smaller types, and random patterns. A NaN must be a NaN; everything else must have the same bits. It fails if one differs.
"""

import argparse
import itertools
import json
import pathlib
import sys

import torch
from tidemark import _engine

BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


def uint8_values():
    return torch.arange(256, dtype=torch.uint8, device="cuda").repeat(1000)[:-1]  # not a multiple of a block


def float32_values():
    upper = torch.arange(2**16, dtype=torch.int64, device="cuda") << 16
    # Halfway between two numbers of bfloat16 and of float16, and next to it.
    lower = torch.tensor([0, 1, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], device="cuda")
    chosen = (upper[:, None] + lower[None, :]).flatten()
    drawn = torch.randint(0, 2**32, (2**22 + 13,), device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    patterns = torch.cat([chosen, drawn])
    return torch.where(patterns >= 2**31, patterns - 2**32, patterns).to(torch.int32).view(torch.float32)


def expected(values, dtype, scale, offset):
    """With one rounding, in float64: a product of two float32 is exact there, and its sum with a third nearly so."""
    if (scale, offset) == (1.0, 0.0):
        return values.to(dtype)
    return (values.to(torch.float32) * scale).to(dtype) if offset == 0 else (values.double() * scale + offset).float().to(dtype)


def differing(result, wanted):
    both_nan = result.isnan() & wanted.isnan()
    return int(((result.view(BITS[result.dtype]) != wanted.view(BITS[wanted.dtype])) & ~both_nan).sum())


def converted(copies, values, dtype, scale, offset):
    result = torch.full(values.shape, 7, dtype=dtype, device="cuda")
    torch.cuda.synchronize()
    names = [str(each).removeprefix("torch.") for each in (values.dtype, dtype)]
    _engine.convert_on_device(copies, *names, scale, offset, values.data_ptr(), result.data_ptr(), values.nbytes)
    torch.cuda.ExternalStream(_engine.copy_stream(copies)).synchronize()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    options = parser.parse_args()
    copies = _engine.host_to_device(torch.cuda.current_device(), 1 << 20, 2, 1)
    # Scales and offsets that are exact in float32; with an offset there are few values, so that float64 is exact.
    cases = [(values, 1.0, 0.0) for values in (uint8_values(), float32_values())]
    cases += [(uint8_values(), 1 / 256, -0.5), (uint8_values(), 0.01171875, 0.0), (float32_values(), 0.3330078125, 0.0)]
    results = []
    for (values, scale, offset), dtype in itertools.product(cases, BITS):
        wrong = differing(converted(copies, values, dtype, scale, offset), expected(values, dtype, scale, offset))
        name = f"{values.dtype} to {dtype}, scale {scale:g}, offset {offset:g}".replace("torch.", "")
        results.append({"conversion": name, "elements": values.numel(), "different": wrong})
        print(f"{name:52} {values.numel():>9} elements, {wrong} different")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results))
    return 1 if any(result["different"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
