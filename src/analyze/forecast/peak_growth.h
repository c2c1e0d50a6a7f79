// Whether the peaks of a memory's use grow, how fast, and since when.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/forecast/cell_growth.h"
#include "analyze/forecast/usage_history.h"

namespace tidemark {

/// Growth in time, of the longest stretch until now in which they grow at one rate.
struct PeakGrowth {
  CellGrowth cells;
  double cell_seconds = 0;
  double span_seconds = 0;  ///< of that stretch
  double age_seconds = 0;   ///< for how long they have grown, at other rates too
  /// What of the age says that it goes on. No longer than the use took to double: what loads a model or a data set
  /// fills memory at a steady rate too, and ends, but seldom where less than a tenth of the limit is left and it still
  /// grows evenly.
  double evidence_seconds = 0;
  std::uint64_t samples = 0;     ///< in the stretch
  std::optional<double> steps;   ///< in the stretch
  bool steps_all_along = false;  ///< they are known, and began in the first half of it
  /// What is still to come when each stretch adds less than the one before by the same factor; none where it does not.
  std::optional<double> saturates_after;

  /// From the peaks as they are now.
  [[nodiscard]] double left_to(std::uint64_t limit_bytes) const {
    return std::max(0.0, static_cast<double>(limit_bytes) - cells.peak_now);
  }
  [[nodiscard]] bool ends_before(double bytes) const;
  [[nodiscard]] double bytes_per_second() const { return cells.per_cell.value / cell_seconds; }
};

/// `spans`: oldest first. `limit_bytes`: peaks at the limit say nothing about where growth ends, others do: what fell
/// by itself once may do so again.
[[nodiscard]] std::optional<PeakGrowth> find_peak_growth(const std::vector<UsageSpan>& spans,
                                                         std::optional<std::uint64_t> limit_bytes);

}  // namespace tidemark
