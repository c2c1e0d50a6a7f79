// Whether a memory grows, from samples of its use alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/forecast/usage_history.h"
#include "analyze/leaks/growth.h"

namespace tidemark {

/// For series that find_series_growth() cannot decide: samples are too few to contain the end of a step in each cell,
/// or occasional frees hide the memory that stays. `floors`: the minimum usage in each cell, oldest first; a cell
/// counts as a step. nullopt if they do not rise, rise in a single jump, slow down, or never fall: floors that never
/// fall have no noise, and are better decided by the steps in which they rise. The growth found is of the class leak,
/// with the slope of Theil and Sen and its 95% interval.
[[nodiscard]] std::optional<Growth> find_floor_trend(std::span<const double> floors);

/// Growth in cells of equal length in time.
struct SampleGrowth {
  Growth cells;  ///< a cell counts as a step
  double cell_seconds = 0;
  double seconds = 0;                  ///< duration of the analyzed stretch
  std::optional<std::uint64_t> steps;  ///< in it
};

/// Growth in the longest stretch until now in which the minimum of each cell grows at one rate, for at least 95
/// seconds, 20 steps if steps are known, and 1% of the maximum usage; or in the longest one of 400 seconds or more in
/// which it rises all along (find_floor_trend). Samples before the first step are ignored. Otherwise the longest
/// shorter stretch, at least a quarter of the observed time, with the class too_few. nullopt if the memory does not
/// grow. `spans`: oldest first.
[[nodiscard]] std::optional<SampleGrowth> find_sample_growth(const std::vector<UsageSpan>& spans);

}  // namespace tidemark
