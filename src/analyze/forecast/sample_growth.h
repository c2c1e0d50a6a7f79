// Whether a memory grows, from samples of its use alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/forecast/usage_history.h"
#include "analyze/leaks/growth.h"

namespace tidemark {

/// Growth in cells of equal length in time.
struct SampleGrowth {
  Growth cells;  ///< a cell counts as a step
  double cell_seconds = 0;
  double seconds = 0;                  ///< of the stretch that was looked at
  std::optional<std::uint64_t> steps;  ///< in it
};

/// Of the longest stretch until now in which the least use of each cell grows at one rate, for 95 seconds at least,
/// and for 20 steps where these are known, and by 1% of the most use; or of the longest one of 400 seconds or more in
/// which it rises all along (find_floor_trend). What came before the first step does not count. Where there is none, of
/// the longest one that is shorter, at least a quarter of what was seen: its class is then too_few. None where the
/// memory does not grow. `spans`: oldest first.
[[nodiscard]] std::optional<SampleGrowth> find_sample_growth(const std::vector<UsageSpan>& spans);

}  // namespace tidemark
