#include "phantom/libraries/solver_workspace.h"

#include <algorithm>
#include <bit>

namespace tidemark::phantom {
namespace {

constexpr std::int64_t kTile = 32;  // columns and rows that are computed together
constexpr std::int64_t kSmallest = 16;
constexpr std::int64_t kLargest = 8192;  // that was measured
constexpr std::int64_t kWide = 16384;    // rows from which QR is decomposed otherwise

std::int64_t tiles(std::int64_t n) {
  return (n + kTile - 1) / kTile;
}
std::int64_t round_up(std::int64_t bytes, std::int64_t step) {
  return (bytes + step - 1) / step * step;
}
std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}
bool is_measured(std::int64_t n) {
  return kSmallest <= n && n <= kLargest;
}
// Every type but complex128.
bool is_measured(SolverType type) {
  return type.bytes <= 8;
}
// A word for each tile of the matrix.
std::int64_t tile_words(std::int64_t n) {
  return 4 * tiles(n) * tiles(n);
}

}  // namespace

SolverWorkspace potrf_workspace(std::int64_t n, SolverType type, bool lower) {
  return {128 + (lower ? round_up(tile_words(n), 32) : 32 * type.bytes), n <= kWide};
}

SolverWorkspace getrf_workspace(std::int64_t m, std::int64_t n, SolverType type) {
  const std::int64_t larger = std::max(m, n);
  // Elsewhere sizes follow rules that were not found: up to 2 KiB off.
  constexpr std::int64_t kFewBefore = 1536;
  const std::int64_t until = type.bytes == 4 ? 3072 : 4096;
  const bool known = larger <= 1024 || (kFewBefore <= larger && larger <= until) || larger == 5120 || larger == 8192;
  const std::int64_t power = power_of_two(larger);
  const std::int64_t panel = larger <= kFewBefore ? 8 * std::min<std::int64_t>(power, 512)
                             : type.bytes == 4    ? std::int64_t{8192} * 4 + power * 3 / 2
                                                  : 8192 * type.bytes + power * 2;
  return {round_up(8 * larger, 256) + round_up(std::max(panel, tile_words(larger)), 256) + 256,
          m == n && known && is_measured(n) && is_measured(type)};
}

SolverWorkspace sytrf_workspace(std::int64_t n, SolverType type) {
  constexpr std::int64_t kWideFrom = 4096;
  const std::int64_t block = n < kWideFrom ? 64 : 128;
  const std::int64_t least = type.bytes == 4 ? 98432 : 106624;
  return {std::max(least, type.bytes * (block * n + 64)), n <= kWide && is_measured(type)};
}

SolverWorkspace syevj_workspace(std::int64_t n, SolverType type) {
  constexpr std::int64_t kLimit = 4096;
  const std::int64_t t = tiles(n);
  const std::int64_t elements = n * n + n + 1024 * (t + 1) + t + 4 * t * t;
  return {elements * type.bytes, n < kLimit};
}

SolverWorkspace syevd_workspace(std::int64_t n, SolverType type) {
  const std::int64_t small = 3 * n * n + 768 * n + 65539 + (n <= 32 ? 32 : 64);
  const std::int64_t large = 4 * n * n + 127 * n + 32963;
  // Other sizes are up to 256 bytes off.
  const bool exact = n % kTile == 0 || (n % 16 == 0 && n <= 640);
  return {std::max(small, large) * type.bytes + 128, exact && is_measured(n) && is_measured(type)};
}

SolverWorkspace syev_batched_workspace(std::int64_t n, std::int64_t batch, SolverType type) {
  const std::int64_t elements = batch * (3 * n * n + 767 * n + 65539) + 64;
  return {elements * type.bytes + 128, is_measured(type) && batch % 4 == 0 && batch <= 32 && (n == 16 || n == 32)};
}

SolverWorkspace geqrf_workspace(std::int64_t m, std::int64_t n, SolverType type) {
  return {1024 * std::max<std::int64_t>(768, 512 + n) * type.bytes, m < kWide && n <= kWide};
}

SolverWorkspace orgqr_workspace(std::int64_t m, std::int64_t n, std::int64_t k, SolverType type) {
  const std::int64_t block = std::min<std::int64_t>(k, 128);
  const std::int64_t rest = std::max<std::int64_t>(0, 2 * n * block - 16384);
  return {(33024 + round_up(m * block, 32) + round_up(rest, 32)) * type.bytes, m <= kWide};
}

SolverWorkspace gesvdj_workspace(std::int64_t n, SolverType type) {
  const std::int64_t t = tiles(n);
  const std::int64_t elements = round_up(2 * n * n + n + 2048 * t + 1024 + t + 4 * t * t, 32);
  return {elements * type.bytes, n % 8 == 0 && n <= kWide};
}

SolverWorkspace gesvdj_batched_workspace(SolverType type) {
  return {992 * type.bytes, true};
}

SolverWorkspace geev_workspace(std::int64_t n, SolverType type) {
  const std::int64_t values = type.complex ? 7 : 4;  // of n elements each, half of the size
  return {type.bytes * n * n + values * type.bytes * n / (type.complex ? 2 : 1) + 512, false};
}

}  // namespace tidemark::phantom
