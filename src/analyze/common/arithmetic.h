// Sums, differences and ratios of sizes that come from a file, which may hold any number.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace tidemark {

[[nodiscard]] constexpr std::uint64_t saturating_add(std::uint64_t left, std::uint64_t right) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return left > kMost - right ? kMost : left + right;
}

/// 0 where `right` is more.
[[nodiscard]] constexpr std::uint64_t saturating_subtract(std::uint64_t left, std::uint64_t right) {
  return left < right ? 0 : left - right;
}

/// None where `whole` is 0.
[[nodiscard]] constexpr std::optional<double> share_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace tidemark
