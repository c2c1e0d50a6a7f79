// Which savings are worth a headline. Smaller ones are facts among others, never advice.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace tidemark {

/// Whether advice that lowers a peak by `saving` bytes at most may stand out: at least 1% of the peak, and 1 MiB.
[[nodiscard]] constexpr bool is_worth_advice(std::uint64_t saving, std::uint64_t peak) {
  return saving >= kMiB && saving >= peak / 100 + (peak % 100 != 0 ? 1 : 0);
}

}  // namespace tidemark
