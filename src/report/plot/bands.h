// Strips above a plot over time: the steps and phases of training.
#pragma once

#include "analyze/timeline/timeline.h"
#include "report/plot/time_plot.h"

namespace tidemark {

/// Of the strips; 0 where nothing is known.
[[nodiscard]] double bands_height(const TimelineBands& bands);

/// Adds them to a plot that has this height above its frame, with keys of the phases.
void add_bands(TimePlot& time, const Timeline& timeline);

}  // namespace tidemark
