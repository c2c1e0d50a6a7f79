// Fragmentation in words, for text and HTML alike.
#pragma once

#include <string>
#include <vector>

#include "analyze/fragmentation/fragmentation.h"

namespace tidemark {

/// A column of measures for people.
struct MeasureColumn {
  const char* name;  ///< "peak allocated"
  const FragmentationMeasures* measures;
};
/// The device's peaks, if it has them, and the end.
[[nodiscard]] std::vector<MeasureColumn> measure_columns(const FragmentationDevice& device);

/// A row of them: its cells in the order of the moments. Indented if it is a part of the row above.
struct MeasureRow {
  const char* label;
  std::vector<std::string> cells;
};
[[nodiscard]] std::vector<MeasureRow> measure_rows(const FragmentationDevice& device);

/// "rises by 12.3 percentage points from 1.204 s to 9.810 s (95% interval +3.1 to +20.4)" as clear_change_text() has
/// it, "shows no clear trend ...", or "has no trend: ...".
[[nodiscard]] std::string trend_text(const std::optional<ShareTrend>& trend);

}  // namespace tidemark
