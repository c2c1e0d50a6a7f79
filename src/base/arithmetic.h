// Sums, differences and ratios of sizes from a file, which may contain any number: they saturate at the ends of the
// range.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace tidemark {

[[nodiscard]] constexpr std::uint64_t saturating_add(std::uint64_t left, std::uint64_t right) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return left > kMax - right ? kMax : left + right;
}

/// 0 if `right` is larger.
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

/// nullopt if `whole` is 0, or a saturated sum.
[[nodiscard]] constexpr std::optional<double> share_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0 || whole == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// A difference without its sign; of the smallest number too.
[[nodiscard]] constexpr std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

}  // namespace tidemark
