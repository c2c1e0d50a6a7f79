// A picture of panels below each other, under one title.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"
#include "report/chart/canvas.h"
#include "report/chart/chart.h"
#include "report/chart/plot.h"

namespace tidemark {

struct ChartPage {
  std::string title;
  std::string what;  ///< a line below it; not yet printable
  std::size_t panels = 0;
  double extra = 0;     ///< height that each panel needs beside its plot
  std::string nothing;  ///< said where there are no panels
};

/// Calls `draw` for each panel with its number and place. Fails when cairo does, or for more than kMaxPanels.
Result<std::string> draw_page(const ChartPage& page, ChartFormat format,
                              const std::function<void(Canvas&, std::size_t, const Box&)>& draw);

/// "python train.py", "python train.py  (3 recordings)".
[[nodiscard]] std::string recordings_words(const RecordingInfo& first, std::size_t count);

}  // namespace tidemark
