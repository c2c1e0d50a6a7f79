// One device of the timeline chart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/timeline.h"
#include "report/chart/canvas.h"
#include "report/chart/plot.h"

namespace tidemark {

struct ChartPanel {
  const TimelineSeries* series = nullptr;
  std::string title;
  std::uint64_t duration_ns = 0;
  std::vector<std::uint64_t> out_of_memory_ns;
};

/// Draws title, axes, the allocated bytes as an area of steps, the reserved bytes as a line of steps (the active bytes
/// likewise, where they differ), the peak, and failed requests. The time axis spans `axis_ns`; only the last panel
/// names its times.
void draw_panel(Canvas& canvas, const ChartPanel& panel, const Box& box, std::uint64_t axis_ns, bool names_times);

}  // namespace tidemark
