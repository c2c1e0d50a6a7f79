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
  std::uint64_t top_bytes = 0;  ///< what the highest row ends at
};

/// Columns at the left, with the scale.
inline constexpr std::size_t kScaleColumns = 11;

/// Fills the region: the chart with its scale, without times. A column is as high as the highest sample in its time,
/// and goes on in another colour up to the peak between samples where one is known. A value holds until the next
/// sample.
void draw_chart(const Region& region, std::span<const WatchedUsagePoint> points, const ChartRange& range);

/// One row of times below charts of the range: how long before its end each is.
void draw_times(const Region& region, std::size_t y, const ChartRange& range);

/// The column, within a chart's region, of a time; none outside the range.
[[nodiscard]] std::optional<std::size_t> column_of(const Region& region, const ChartRange& range, std::int64_t time_ns);

struct BarValue {
  std::uint64_t used = 0;
  std::uint64_t total = 0;
  std::optional<std::uint64_t> peak;  ///< the most that was used; none: not shown
  Role role = Role::used;
};

/// `width` columns from (x, y) on. What is used shows at least a trace; all of it only where nothing is left.
void draw_bar(const Region& region, std::size_t x, std::size_t y, std::size_t width, const BarValue& value);

}  // namespace tidemark::tui
