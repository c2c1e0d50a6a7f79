#include "tui/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/units.h"
#include "tui/canvas.h"

namespace tidemark::tui {
namespace {

// The content of one column; `known` is false without samples.
struct Level {
  std::uint64_t used = 0;
  std::uint64_t peak = 0;
  bool known = false;

  void raise(std::uint64_t used_bytes, std::uint64_t peak_bytes) {
    used = std::max(used, used_bytes);
    peak = std::max({peak, used_bytes, peak_bytes});
    known = true;
  }
};

std::size_t clamped_column(const ChartRange& range, std::size_t columns, std::int64_t time_ns) {
  if (time_ns <= range.from_ns) return 0;
  const double share = static_cast<double>(time_ns - range.from_ns) /
                       static_cast<double>(std::max<std::int64_t>(range.to_ns - range.from_ns, 1));
  return std::min(static_cast<std::size_t>(share * static_cast<double>(columns)), columns - 1);
}

std::vector<Level> levels_of(std::span<const WatchedUsagePoint> points, const ChartRange& range, std::size_t columns) {
  std::vector<Level> levels(columns);
  for (std::size_t n = 0; n < points.size(); ++n) {
    const WatchedUsagePoint& point = points[n];
    const auto begin = static_cast<std::int64_t>(point.begin_ns);
    const auto end = static_cast<std::int64_t>(point.end_ns);
    const auto until = n + 1 < points.size() ? static_cast<std::int64_t>(points[n + 1].begin_ns) : end;
    if (until < range.from_ns || begin > range.to_ns) continue;
    const std::size_t last = clamped_column(range, columns, end);
    if (end >= range.from_ns) {
      for (std::size_t column = clamped_column(range, columns, begin); column <= last; ++column) {
        levels[column].raise(point.last_bytes, point.high_bytes);
      }
    }
    for (std::size_t column = last; column < clamped_column(range, columns, until); ++column) {
      levels[column].raise(point.last_bytes, 0);
    }
  }
  return levels;
}

// Eighths of a row's cell that a value fills, with `rows` rows up to `top`.
std::size_t eighths_in_row(std::uint64_t value, std::uint64_t top, std::size_t rows, std::size_t row) {
  const double all =
      static_cast<double>(value) / static_cast<double>(std::max<std::uint64_t>(top, 1)) * static_cast<double>(rows * 8);
  const double here = std::clamp(all - static_cast<double>(row * 8), 0.0, 8.0);
  const auto filled = static_cast<std::size_t>(std::lround(here));
  return row == 0 && value != 0 ? std::max<std::size_t>(filled, 1) : filled;  // a small value is still visible
}

// The number of columns of a share, out of `width`.
std::size_t columns_of(std::uint64_t part, std::uint64_t total, std::size_t width) {
  if (total == 0 || part == 0) return 0;
  if (part >= total) return width;
  const double share = static_cast<double>(part) / static_cast<double>(total);
  const auto columns = static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
  return std::clamp<std::size_t>(columns, 1, std::max<std::size_t>(width, 2) - 1);
}

}  // namespace

void draw_chart(const Region& region, std::span<const WatchedUsagePoint> points, const ChartRange& range) {
  const std::size_t rows = region.height();
  if (region.width() <= kScaleColumns || rows == 0) return;
  const Glyphs& glyphs = glyphs_of(region);
  region.print_right(kScaleColumns - 1, 0, format_bytes(range.top_bytes), {Role::quiet});
  if (rows > 1) region.print_right(kScaleColumns - 1, rows - 1, "0 B", {Role::quiet});
  const std::vector<Level> levels = levels_of(points, range, region.width() - kScaleColumns);
  for (std::size_t column = 0; column < levels.size(); ++column) {
    const Level& level = levels[column];
    if (!level.known) continue;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t used = eighths_in_row(level.used, range.top_bytes, rows, row);
      const std::size_t peak = eighths_in_row(level.peak, range.top_bytes, rows, row);
      const std::size_t y = rows - 1 - row;
      if (used != 0) region.print(kScaleColumns + column, y, glyphs.eighths[used], Role::used);
      if (used == 0 && peak != 0) region.print(kScaleColumns + column, y, glyphs.peak, Role::peak);
    }
  }
}

void draw_times(const Region& region, std::size_t y, const ChartRange& range) {
  if (region.width() <= kScaleColumns) return;
  const std::size_t columns = region.width() - kScaleColumns;
  const auto before = [&](std::int64_t ns) {
    const std::int64_t seconds = (ns + 500'000'000) / 1'000'000'000;
    if (seconds < 120) return fmt::format("-{} s", seconds);
    return seconds < 7200 ? fmt::format("-{:.1f} min", static_cast<double>(seconds) / 60)
                          : fmt::format("-{:.1f} h", static_cast<double>(seconds) / 3600);
  };
  const std::int64_t length = range.to_ns - range.from_ns;
  region.print(kScaleColumns, y, before(length), Role::quiet);
  region.print(kScaleColumns + columns / 2, y, before(length / 2), Role::quiet);
  region.print_right(region.width(), y, "now", {Role::quiet});
}

std::optional<std::size_t> column_of(const Region& region, const ChartRange& range, std::int64_t time_ns) {
  if (time_ns < range.from_ns || time_ns > range.to_ns || region.width() <= kScaleColumns) return std::nullopt;
  return kScaleColumns + clamped_column(range, region.width() - kScaleColumns, time_ns);
}

void draw_bar(const Region& region, std::size_t x, std::size_t y, std::size_t width, const BarValue& value) {
  const Glyphs& glyphs = glyphs_of(region);
  const std::size_t used = columns_of(value.used, value.total, width);
  for (std::size_t column = 0; column < width; ++column) {
    const bool filled = column < used;
    region.print(x + column, y, filled ? glyphs.full : glyphs.room, filled ? value.role : Role::room);
  }
  if (!value.peak || *value.peak <= value.used) return;
  const std::size_t peak = columns_of(*value.peak, value.total, width);
  if (peak > used) region.print(x + peak - 1, y, "|", Role::peak);
}

}  // namespace tidemark::tui
