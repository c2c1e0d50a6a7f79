#include "phantom/libraries/fft_workspace.h"

#include <algorithm>
#include <bit>

namespace tidemark::phantom {
namespace {

// Which cuFFT computes most directly.
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
  // Other prime factors: where they are large, transforms of twice the length and more.
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

}  // namespace

FftWorkspace fft_workspace(const FftPlan& plan) {
  if (plan.rank == 1) return one_dimension(plan);
  const long long* end = plan.lengths + plan.rank;
  // Those that were measured have at most 2,048 elements in a dimension.
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

}  // namespace tidemark::phantom
