// Whether the least use of successive cells rises all along, where it goes up and down as it does so.
#pragma once

#include <optional>
#include <span>

#include "analyze/leaks/growth.h"

namespace tidemark {

/// For what find_series_growth() cannot tell: samples are too few to meet the end of a step in each cell, or what is
/// freed now and then hides what stays. `floors`: the least use in each cell, oldest first; a cell counts as a step.
/// None where they do not rise, rise in a single jump, slow down, or never fall: those that never fall have no noise,
/// and the steps in which they rise say more. What is found is of the class leak, with the slope of Theil and Sen and
/// its 95% interval.
[[nodiscard]] std::optional<Growth> find_floor_trend(std::span<const double> floors);

}  // namespace tidemark
