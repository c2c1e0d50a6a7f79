// Whether peaks grow all along, in cells of equal length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "analyze/common/trend.h"

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

}  // namespace tidemark
