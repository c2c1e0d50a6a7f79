"""The source of the kernels that read 16-bit tensors, in CUDA C++, compiled when a program first needs them.

PyTorch's multi-tensor norm loads four values at a time, which are 8 bytes of these types; these load 16 bytes, and have four
such loads in flight in each thread. Two launches serve many tensors: a block of the first reads one piece of one tensor and
writes one number, a block of the second combines the numbers of one tensor, always in the same order. Tensors are described by
a parameter of the launch, so nothing is copied to the device.
"""

from __future__ import annotations

import math

#: Threads of a block.
THREADS = 256
#: Tensors of a launch: all parameters of a launch may take 4 KiB.
TENSORS = 192

#: Names of the two kernels.
NAMES = ("tidemark_norm_pieces", "tidemark_norm_totals")

_SOURCE = r"""
struct Tensors {
  const unsigned short* values[TENSORS];  // aligned to 16 bytes
  unsigned long long sizes[TENSORS];      // elements
  unsigned first[TENSORS + 1];            // the first piece of each tensor, and after the last one
  unsigned count;
  unsigned piece;  // elements, a multiple of 8
};

// The two values of a word. Bits without the sign are in the order of magnitudes, infinity and NaN above all others.
struct Largest {
  typedef unsigned Number;
  unsigned found = 0;
  __device__ void take(unsigned word, int) { found = __vmaxu2(found, word & 0x7fff7fffu); }
  __device__ unsigned number() const { return max(found >> 16, found & 0xffffu); }
  static __device__ unsigned join(unsigned one, unsigned other) { return max(one, other); }
  static __device__ float norm(unsigned bits) { return to_float(bits); }
};

struct Squares {
  typedef float Number;
  float sums[4] = {};  // so that additions need not wait for each other
  __device__ void take(unsigned word, int sum) {
    const float low = to_float(word & 0xffffu), high = to_float(word >> 16);
    sums[sum] = fmaf(high, high, fmaf(low, low, sums[sum]));
  }
  __device__ float number() const { return (sums[0] + sums[1]) + (sums[2] + sums[3]); }
  static __device__ float join(float one, float other) { return one + other; }
  static __device__ float norm(float sum) { return sqrtf(sum); }
};

// What all threads of the block have found, in thread 0.
template <typename Way>
__device__ typename Way::Number of_block(typename Way::Number number) {
  __shared__ typename Way::Number of_warps[THREADS / 32];
  for (int away = 16; away > 0; away /= 2) number = Way::join(number, __shfl_down_sync(~0u, number, away));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = number;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < THREADS / 32; ++warp) number = Way::join(number, of_warps[warp]);
  return number;
}

template <typename Way>
__device__ void take(Way& way, uint4 vector) {
  way.take(vector.x, 0);
  way.take(vector.y, 1);
  way.take(vector.z, 2);
  way.take(vector.w, 3);
}

template <typename Way>
__device__ void read_piece(const Tensors& tensors, typename Way::Number* numbers) {
  unsigned tensor = 0;
  for (unsigned after = tensors.count; after - tensor > 1;) {
    const unsigned middle = (tensor + after) / 2;
    if (tensors.first[middle] <= blockIdx.x) tensor = middle;
    else after = middle;
  }
  const unsigned long long begin = (blockIdx.x - tensors.first[tensor]) * (unsigned long long)tensors.piece;
  const unsigned long long left = tensors.sizes[tensor] - begin;
  const unsigned size = left < tensors.piece ? (unsigned)left : tensors.piece;
  const unsigned short* const values = tensors.values[tensor] + begin;
  const uint4* const vectors = reinterpret_cast<const uint4*>(values);
  const unsigned count = size / 8;
  Way way;
  unsigned i = threadIdx.x;
  for (; i + 3 * THREADS < count; i += 4 * THREADS) {
    const uint4 first = __ldcs(vectors + i), second = __ldcs(vectors + i + THREADS);
    const uint4 third = __ldcs(vectors + i + 2 * THREADS), fourth = __ldcs(vectors + i + 3 * THREADS);
    take(way, first);
    take(way, second);
    take(way, third);
    take(way, fourth);
  }
  for (; i < count; i += THREADS) take(way, __ldcs(vectors + i));
  if (threadIdx.x < size % 8) way.take(values[count * 8 + threadIdx.x], 0);
  const typename Way::Number number = of_block<Way>(way.number());
  if (threadIdx.x == 0) numbers[blockIdx.x] = number;
}

template <typename Way>
__device__ void join_pieces(const Tensors& tensors, const typename Way::Number* numbers, float* norms) {
  typename Way::Number number = 0;
  for (unsigned i = tensors.first[blockIdx.x] + threadIdx.x; i < tensors.first[blockIdx.x + 1]; i += THREADS)
    number = Way::join(number, numbers[i]);
  number = of_block<Way>(number);
  if (threadIdx.x == 0) norms[blockIdx.x] = Way::norm(number);
}

extern "C" __global__ void __launch_bounds__(THREADS) tidemark_norm_pieces(const Tensors tensors, WAY::Number* numbers) {
  read_piece<WAY>(tensors, numbers);
}
extern "C" __global__ void __launch_bounds__(THREADS) tidemark_norm_totals(const Tensors tensors, const WAY::Number* numbers,
                                                                           float* norms) {
  join_pieces<WAY>(tensors, numbers, norms);
}
"""

#: Conversion of 16 bits to a float, without the headers of a CUDA toolkit.
_TO_FLOAT = {
    "bfloat16": "__device__ float to_float(unsigned bits) { return __uint_as_float(bits << 16); }",
    "float16": """__device__ float to_float(unsigned bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
  return value;
}""",
}


_WAYS = {math.inf: "Largest", 2.0: "Squares"}


def source(dtype: str, order: float) -> str:
    """Source for tensors of ``bfloat16`` or ``float16`` and norms of order 2 or infinity; KeyError for others."""
    sizes = f"#define THREADS {THREADS}\n#define TENSORS {TENSORS}\n#define WAY {_WAYS[order]}\n"
    return sizes + _TO_FLOAT[dtype] + _SOURCE
