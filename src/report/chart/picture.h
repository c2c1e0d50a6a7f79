// A picture: plots below each other, under one title.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "report/chart/chart.h"
#include "report/plot/plot.h"

namespace tidemark {

struct PicturePanel {
  std::string title;
  Plot plot;
};

/// All texts are printable.
struct Picture {
  std::string title;
  std::string recordings;  ///< title of the recordings
  std::vector<PicturePanel> panels;
  std::string nothing;  ///< message if there are no panels
  std::string x_axis;   ///< label of the x-axis; may be empty
};

/// Fails for more than kMaxPanels.
[[nodiscard]] Result<void> check_panel_count(std::size_t panels);

/// The file's bytes. Keys that all panels share are at the top, others below the panel's title. Fails when cairo does.
[[nodiscard]] Result<std::string> draw_picture(const Picture& picture, ChartFormat format);

}  // namespace tidemark
