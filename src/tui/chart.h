// A memory's use on a terminal: over time as columns, and now as a bar along a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "monitor/watched_usage.h"
#include "tui/canvas.h"

namespace tidemark::tui {

struct ChartRange {
  std::int64_t from_ns = 0;  ///< as in MachineState; below 0: before watching began
  std::int64_t to_ns = 0;
  std::uint64_t top_bytes = 0;  ///< the upper end of the highest row
};

/// Columns at the left, with the scale.
inline constexpr std::size_t kScaleColumns = 11;

/// Fills the region with the chart and its scale, without times. The height of a column is the maximum sample in its
/// time, extended in another colour up to the peak between samples, if one is known. A value holds until the next
/// sample.
void draw_chart(const Region& region, std::span<const WatchedUsagePoint> points, const ChartRange& range);

/// One row of times below charts of the range: how long before its end each is.
void draw_times(const Region& region, std::size_t y, const ChartRange& range);

/// The column of a time within a chart's region; nullopt outside the range.
[[nodiscard]] std::optional<std::size_t> column_of(const Region& region, const ChartRange& range, std::int64_t time_ns);

struct BarValue {
  std::uint64_t used = 0;
  std::uint64_t total = 0;
  std::optional<std::uint64_t> peak;  ///< maximum usage; nullopt: not shown
  Role role = Role::used;
};

/// `width` columns from (x, y) on. Any used memory shows at least a trace; a full bar means that no memory is free.
void draw_bar(const Region& region, std::size_t x, std::size_t y, std::size_t width, const BarValue& value);

}  // namespace tidemark::tui
