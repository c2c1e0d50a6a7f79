// cuFFT: plans, and how large a workspace they ask for. Its documentation bounds it: from one to eight complex numbers
// for each element of all transforms (https://docs.nvidia.com/cuda/cufft/). One is answered where all lengths have no
// prime factor above 7, which cuFFT computes most directly, eight for others; both are estimates.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/usage.h"

namespace tidemark::phantom {
namespace {

bool has_small_factors(long long length) {
  for (const long long factor : {2, 3, 5, 7})
    while (length > 1 && length % factor == 0) length /= factor;
  return length <= 1;
}

// Of a complex number, by the cudaDataType that is computed with.
std::size_t complex_bytes(int type) {
  switch (type) {
    case 1:  // CUDA_R_64F
    case 5:  // CUDA_C_64F
      return 16;
    case 2:   // CUDA_R_16F
    case 6:   // CUDA_C_16F
    case 14:  // CUDA_R_16BF
    case 15:  // CUDA_C_16BF
      return 4;
    default:
      return 8;
  }
}

}  // namespace

TIDEMARK_PHANTOM_API int cufftCreate(int* plan) {
  static std::atomic<int> next{1};
  *plan = next.fetch_add(1);
  return 0;
}
TIDEMARK_PHANTOM_API int cufftXtMakePlanMany(int, int rank, const long long* lengths, const long long*, long long,
                                             long long, int, const long long*, long long, long long, int,
                                             long long batch, std::size_t* workspace, int type) {
  std::size_t bytes = complex_bytes(type) * static_cast<std::size_t>(batch);
  std::string name = "a transform of";
  for (const long long* length = lengths; length != lengths + rank; ++length) {
    bytes *= static_cast<std::size_t>(*length);
    name += (length == lengths ? " " : " x ") + std::to_string(*length);
  }
  count_estimate(Estimate::cufft_workspace, name + ", batch size " + std::to_string(batch));
  *workspace = std::all_of(lengths, lengths + rank, has_small_factors) ? bytes : 8 * bytes;
  return 0;
}

}  // namespace tidemark::phantom
