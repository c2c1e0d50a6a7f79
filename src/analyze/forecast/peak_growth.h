// Whether the peaks of a memory's use grow, how fast, and since when; of repeating peaks each for itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/common/trend.h"
#include "analyze/forecast/usage_history.h"

namespace tidemark {

inline constexpr std::size_t kFewestGrownCells = 8;

/// Growth of the peaks in cells of equal length.
struct CellGrowth {
  Slope per_cell;           ///< of Theil and Sen, 90%
  double grown = 0;         ///< from the first peaks to the highest
  double peak_now = 0;      ///< the line of the highest peaks at the end of the last cell
  double noise = 0;         ///< how far peaks are from the line, median
  double began = 0;         ///< share of the cells that came before the growth
  double later_share = 0;   ///< what the second half of it grew by for each byte that the first half did
  std::uint32_t rises = 0;  ///< cells that were higher than all before
  /// One of the last quarter of the cells rose by more than any before, and since then nothing has grown for long
  /// enough to tell: what grew before may have ended there, as loading does with the first step.
  bool jumped = false;
};

/// None where the peaks do not grow all along: a single jump, noise, growth that has stopped. `before`: how high the
/// peaks were before, at least half of the growth is above it.
[[nodiscard]] std::optional<CellGrowth> find_cell_growth(std::span<const double> peaks, double before);

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
