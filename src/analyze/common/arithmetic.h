// Sums, differences and ratios of sizes that come from a file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/saturating.h"  // IWYU pragma: export

namespace tidemark {

/// None where `whole` is 0, or a sum that stopped at the end of its range.
[[nodiscard]] constexpr std::optional<double> share_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0 || whole == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace tidemark
