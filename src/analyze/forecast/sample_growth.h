// Whether a memory grows, from samples of its use alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/forecast/usage_history.h"
#include "analyze/leaks/growth.h"

namespace tidemark {

/// For what find_series_growth() cannot tell: samples are too few to meet the end of a step in each cell, or what is
/// freed now and then hides what stays. `floors`: the least use in each cell, oldest first; a cell counts as a step.
/// None where they do not rise, rise in a single jump, slow down, or never fall: those that never fall have no noise,
/// and the steps in which they rise say more. What is found is of the class leak, with the slope of Theil and Sen and
/// its 95% interval.
[[nodiscard]] std::optional<Growth> find_floor_trend(std::span<const double> floors);

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
