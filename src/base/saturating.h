// Sums and differences of sizes that come from a file, which may hold any number: they stop at the ends of the range.
#pragma once

#include <cstdint>
#include <limits>

namespace tidemark {

[[nodiscard]] constexpr std::uint64_t saturating_add(std::uint64_t left, std::uint64_t right) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return left > kMax - right ? kMax : left + right;
}

/// 0 where `right` is more.
[[nodiscard]] constexpr std::uint64_t saturating_subtract(std::uint64_t left, std::uint64_t right) {
  return left < right ? 0 : left - right;
}

[[nodiscard]] constexpr std::int64_t saturating_add(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(left, right, &sum)) return sum;
  return left < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

/// `to` - `from`.
[[nodiscard]] constexpr std::int64_t saturating_change(std::uint64_t from, std::uint64_t to) {
  std::int64_t change = 0;
  if (!__builtin_sub_overflow(to, from, &change)) return change;
  return to < from ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

}  // namespace tidemark
