// cuFFT: plans, and their workspace (fft_workspace.h).
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"

namespace tidemark::phantom {

namespace {

/// One plan: `batch` transforms of `rank` lengths each.
struct FftPlan {
  const long long* lengths = nullptr;
  int rank = 1;
  std::int64_t batch = 1;
  std::int64_t element_bytes = 8;  ///< of a complex number
  bool real = false;               ///< one side is real numbers
  bool strided = false;            ///< the elements of a transform are not contiguous
};

struct FftWorkspace {
  std::int64_t bytes = 0;
  bool measured = false;  ///< equals the measurements in this range; otherwise an estimate
};

// Lengths that cuFFT computes most directly.
bool has_small_factors(long long length) {
  for (const long long factor : {2, 3, 5, 7})
    while (length > 1 && length % factor == 0) length /= factor;
  return length <= 1;
}
bool is_power_of_two(long long length) {
  return std::has_single_bit(static_cast<unsigned long long>(length));
}

FftWorkspace one_dimension(const FftPlan& plan) {
  const long long n = plan.lengths[0];
  const bool single = plan.element_bytes == 8;
  const std::int64_t complex = n * plan.batch * plan.element_bytes;
  // Other prime factors: if they are large, transforms of twice the length and more.
  if (!has_small_factors(n)) {
    constexpr long long kOneKernel = 4096;
    const std::int64_t whole = n > kOneKernel ? 4 * complex : complex;
    return {plan.real && n % 2 == 0 ? whole / 2 : whole, false};
  }
  const bool one_kernel = is_power_of_two(n) && !plan.strided;
  if (!plan.real) {
    if (n < (single ? 1024 : 256)) return {0, !plan.strided || is_power_of_two(n)};
    if (one_kernel && n <= 16384) return {0, true};
    if (n > (single ? 32768 : 16384)) return {complex, true};
    return {plan.strided ? complex : 0, false};
  }
  if (one_kernel && n <= (single ? 16384 : 4096)) return {0, true};
  if (n % 2 == 0 && n > 65536) return {complex / 2 + plan.batch * plan.element_bytes, true};
  return {n % 2 == 0 ? complex / 2 : complex, false};
}

// For cuFFT of CUDA 13.0 on an H200 (scripts/measure_workspaces.py); docs/phantom-gpu.md lists held-out cases.
FftWorkspace fft_workspace(const FftPlan& plan) {
  if (plan.rank == 1) return one_dimension(plan);
  const long long* end = plan.lengths + plan.rank;
  // Measured plans have at most 2,048 elements in a dimension.
  constexpr long long kLargest = 2048;
  if (std::all_of(plan.lengths, end, has_small_factors)) {
    const bool measured =
        std::all_of(plan.lengths, end, is_power_of_two) && *std::max_element(plan.lengths, end) <= kLargest;
    return {0, measured && !plan.strided};
  }
  std::int64_t bytes = plan.batch * plan.element_bytes;
  for (const long long* length = plan.lengths; length != end; ++length) bytes *= *length;
  return {bytes, false};
}

// Size of a complex number, by the cudaDataType of the computation.
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

bool is_real(int type) {
  constexpr int kFloat32 = 0;  // CUDA_R_32F
  constexpr int kFloat64 = 1;
  constexpr int kFloat16 = 2;
  constexpr int kBfloat16 = 14;
  return type == kFloat32 || type == kFloat64 || type == kFloat16 || type == kBfloat16;
}

}  // namespace

TIDEMARK_PHANTOM_API int cufftCreate(int* plan) {
  static std::atomic<int> next{1};
  *plan = next.fetch_add(1);
  return 0;
}
TIDEMARK_PHANTOM_API int cufftXtMakePlanMany(int, int rank, const long long* lengths, const long long* input_lengths,
                                             long long, long long, int input_type, const long long*, long long,
                                             long long, int output_type, long long batch, std::size_t* workspace,
                                             int type) {
  const bool strided = input_lengths != nullptr;
  const bool real = is_real(input_type) || is_real(output_type);
  const FftWorkspace found =
      fft_workspace({lengths, rank, batch, static_cast<std::int64_t>(complex_bytes(type)), real, strided});
  *workspace = static_cast<std::size_t>(found.bytes);
  if (found.measured && complex_bytes(type) >= 8 && is_measured_cuda_libraries()) return 0;
  std::string name = "a transform of";
  for (const long long* length = lengths; length != lengths + rank; ++length)
    name += (length == lengths ? " " : " x ") + std::to_string(*length);
  count_estimate(Estimate::cufft_workspace, name + ", batch size " + std::to_string(batch));
  return 0;
}

}  // namespace tidemark::phantom
