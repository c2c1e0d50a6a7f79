"""The kernels' source, run by threads of the CPU, to check its results. A GPU compiler's code can be checked only on a GPU."""

from __future__ import annotations

import ctypes
import math
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.model_analysis import fused_kernel
from tidemark.model_analysis.fused_source import NAMES, TENSORS, THREADS, source

torch = pytest.importorskip("torch")
NAN, INF = math.nan, math.inf
COMPILER = shlex.split(os.environ.get("CXX", "")) or ["c++"]

#: The parts of CUDA that the source uses: a block's threads are threads, and all of them synchronize where a warp would.
CUDA = r"""
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define asm(...) value = float_of_half(bits)
struct uint4 { unsigned x, y, z, w; };
thread_local struct { unsigned x; } threadIdx, blockIdx;
std::barrier<> block(THREADS);
unsigned max(unsigned one, unsigned other) { return one > other ? one : other; }
unsigned __vmaxu2(unsigned a, unsigned b) { return max(a >> 16, b >> 16) << 16 | max(a & 0xffff, b & 0xffff); }
float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
void __syncthreads() { block.arrive_and_wait(); }
uint4 __ldcs(const uint4* vector) {
  if (reinterpret_cast<unsigned long long>(vector) % 16 != 0) std::abort();
  return *vector;
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned away) {
  static T all[THREADS];
  all[threadIdx.x] = value;
  block.arrive_and_wait();
  const T found = threadIdx.x % 32 + away < 32 ? all[threadIdx.x + away] : value;
  block.arrive_and_wait();
  return found;
}
template <typename Work>
void launch(unsigned blocks, Work work) {
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < THREADS; ++thread)
    threads.emplace_back([=] {
      threadIdx.x = thread;
      for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        work();
        block.arrive_and_wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
}
"""

RUN = f"""
extern "C" void run(const Tensors* tensors, float* norms) {{
  std::vector<WAY::Number> numbers(tensors->first[tensors->count]);
  launch(numbers.size(), [&] {{ {NAMES[0]}(*tensors, numbers.data()); }});
  launch(tensors->count, [&] {{ {NAMES[1]}(*tensors, numbers.data(), norms); }});
}}
"""

#: Numbers of elements: around the sizes of a load, of a round of the threads, and of a piece.
SIZES = [1, 7, 8, 9, 255, 8191, 8192, 8193, 65_535, 65_536, 65_537, 140_003]


def values_of(dtype: Any) -> list[Any]:
    """Tensors with values set by hand, at the ends and inside."""
    torch.manual_seed(0)
    found = [torch.randn(size).to(dtype) for size in SIZES]
    for size, place, value in ((9, 8, NAN), (8193, 8192, INF), (8193, 0, -INF), (65_537, 65_536, -NAN), (65_536, 70, -1000.0)):
        tensor = torch.randn(size).to(dtype)
        tensor[place] = value
        found.append(tensor)
    both = torch.randn(66_000).to(dtype)
    both[3], both[-1] = INF, NAN
    denormals = torch.arange(1000, dtype=torch.int16).remainder(64).view(dtype)
    return [*found, both, denormals, torch.zeros(100, dtype=dtype), torch.full((20,), torch.finfo(dtype).min, dtype=dtype)]


@pytest.mark.skipif(shutil.which(COMPILER[0]) is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("order", [INF, 2.0])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_norms_of_the_source(dtype: Any, order: float, tmp_path: Path) -> None:
    text = source(str(dtype).rpartition(".")[2], order)
    half = "float float_of_half(unsigned short bits) { return __builtin_bit_cast(_Float16, bits); }\n"
    (tmp_path / "norms.cpp").write_text(f"#define THREADS {THREADS}\n{CUDA}{half if 'asm' in text else ''}{text}{RUN}")
    command = [*COMPILER, "-std=c++20", "-O1", "-w", "-pthread", "-shared", "-fPIC", "norms.cpp", "-o", "norms.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    tensors = values_of(dtype)
    described = fused_kernel._described(tensors)
    assert described.first[len(tensors)] > len(tensors)  # some are of several pieces
    found = (ctypes.c_float * len(tensors))()
    ctypes.CDLL(str(tmp_path / "norms.so")).run(ctypes.byref(described), found)
    for tensor, norm in zip(tensors, found):
        wide = tensor.double().abs()
        expected = float(wide.max() if order == INF else wide.square().sum().sqrt())
        if order == 2.0 and expected > math.sqrt(torch.finfo(torch.float32).max):
            expected = INF
        assert norm == pytest.approx(expected, rel=0 if order == INF else 1e-6, abs=0 if order == INF else 1e-18, nan_ok=True)


def test_memory_for_pieces_is_bounded() -> None:
    sizes = [2**36, 5, *[2**30] * (TENSORS - 2)]
    described = fused_kernel._described([SimpleNamespace(numel=lambda size=size: size, data_ptr=lambda: 16) for size in sizes])
    pieces = described.first[TENSORS]
    assert 2**16 < pieces <= 2**17 and described.piece % 8 == 0
    assert [described.first[i + 1] - described.first[i] for i in range(3)] == [
        -(-size // described.piece) for size in sizes[:3]
    ]


def test_what_the_kernels_do_not_read_is_left_to_pytorch() -> None:
    assert fused_kernel.readable([torch.zeros(2**26, dtype=torch.bfloat16)], [0], INF) == []  # on the CPU
    large = SimpleNamespace(
        device=SimpleNamespace(type="cuda", index=0),
        dtype=torch.bfloat16,
        numel=lambda: 2**25,
        is_contiguous=lambda: True,
        data_ptr=lambda: 1 << 20,
    )
    others = {"dtype": torch.float32, "is_contiguous": lambda: False, "data_ptr": lambda: (1 << 20) + 6, "numel": lambda: 2**24}
    assert fused_kernel.readable([large], [0], INF) == [0]
    for name, value in others.items():
        assert fused_kernel.readable([SimpleNamespace(**{**vars(large), name: value})], [0], INF) == []
