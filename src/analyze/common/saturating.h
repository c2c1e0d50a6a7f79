// Sums and differences of sizes that come from a file, which may hold any number.
#pragma once

#include <cstdint>
#include <limits>

namespace tidemark {

[[nodiscard]] constexpr std::uint64_t saturating_add(std::uint64_t left, std::uint64_t right) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return left > kMost - right ? kMost : left + right;
}

/// 0 where `right` is more.
[[nodiscard]] constexpr std::uint64_t saturating_subtract(std::uint64_t left, std::uint64_t right) {
  return left < right ? 0 : left - right;
}

}  // namespace tidemark
