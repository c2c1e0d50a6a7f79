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
  double later_share = 0;   ///< growth of the second half per byte of growth of the first half
  std::uint32_t rises = 0;  ///< cells that were higher than all before
  /// One of the last quarter of the cells rose by more than any before, and the growth since then is too short: earlier
  /// growth may have ended there, as loading does with the first step.
  bool jumped = false;
};

/// nullopt if the peaks do not grow all along: a single jump, noise, growth that has stopped. `before`: the earlier
/// level of the peaks; at least half of the growth is above it.
[[nodiscard]] std::optional<CellGrowth> find_cell_growth(std::span<const double> peaks, double before);

/// Growth over time, in the longest stretch until now with one rate.
struct PeakGrowth {
  CellGrowth cells;
  double cell_seconds = 0;
  double span_seconds = 0;  ///< duration of that stretch
  double age_seconds = 0;   ///< duration of the growth, including other rates
  /// Duration of the growth, as evidence that it continues. Limited to the time in which the usage doubled: loading a
  /// model or a data set also fills memory at a steady rate, and ends, but seldom if less than a tenth of the limit is
  /// left and it still grows evenly.
  double evidence_seconds = 0;
  std::uint64_t samples = 0;     ///< in the stretch
  std::optional<double> steps;   ///< in the stretch
  bool steps_all_along = false;  ///< steps are known, and began in the first half of the stretch
  /// Remaining growth if each stretch adds less than the one before by the same factor; nullopt if it does not.
  std::optional<double> saturates_after;

  /// Bytes from the current peaks to the limit.
  [[nodiscard]] double left_to(std::uint64_t limit_bytes) const {
    return std::max(0.0, static_cast<double>(limit_bytes) - cells.peak_now);
  }
  [[nodiscard]] bool ends_before(double bytes) const;
  [[nodiscard]] double bytes_per_second() const { return cells.per_cell.value / cell_seconds; }
};

/// `spans`: oldest first. `limit_bytes`: peaks at the limit are no evidence of where growth ends; lower ones are,
/// because usage that fell by itself once may do so again.
[[nodiscard]] std::optional<PeakGrowth> find_peak_growth(const std::vector<UsageSpan>& spans,
                                                         std::optional<std::uint64_t> limit_bytes);

}  // namespace tidemark
