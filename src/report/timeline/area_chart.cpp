#include "report/timeline/area_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr std::size_t kRows = 10;

// Highest value of each column of the drawing. A value holds until the next point, so also for the columns between two
// points.
std::vector<std::uint64_t> values_of_columns(const std::vector<TimedBytes>& points, std::uint64_t duration_ns,
                                             std::size_t columns) {
  std::vector<std::uint64_t> values(columns, 0);
  const double per_ns = static_cast<double>(columns) / static_cast<double>(std::max<std::uint64_t>(duration_ns, 1));
  const auto column_of = [&](std::uint64_t time_ns) {
    return std::min(columns - 1, static_cast<std::size_t>(static_cast<double>(time_ns) * per_ns));
  };
  for (std::size_t index = 0; index < points.size(); ++index) {
    const std::size_t first = column_of(points[index].time_ns);
    const std::size_t last = index + 1 < points.size() ? column_of(points[index + 1].time_ns) : columns - 1;
    for (std::size_t column = first; column <= last; ++column) {
      values[column] = std::max(values[column], points[index].bytes);
    }
  }
  return values;
}

}  // namespace

std::size_t drawing_columns(const Terminal& terminal) {
  return (terminal.width == 0 ? Terminal().width : std::max<std::size_t>(terminal.width, 40)) - kScaleWidth - 1;
}

std::string area_chart(const std::vector<TimedBytes>& points, std::uint64_t highest, std::uint64_t duration_ns,
                       const Terminal& terminal) {
  static constexpr std::array<const char*, 9> kEighths = {" ",
                                                          "\xE2\x96\x81",
                                                          "\xE2\x96\x82",
                                                          "\xE2\x96\x83",
                                                          "\xE2\x96\x84",
                                                          "\xE2\x96\x85",
                                                          "\xE2\x96\x86",
                                                          "\xE2\x96\x87",
                                                          "\xE2\x96\x88"};
  const std::size_t columns = drawing_columns(terminal);
  const std::vector<std::uint64_t> values = values_of_columns(points, duration_ns, columns);
  const double top = static_cast<double>(std::max<std::uint64_t>(highest, 1));
  std::string text;
  for (std::size_t row = kRows; row-- > 0;) {
    std::string scale;
    if (row + 1 == kRows) scale = format_bytes(highest);
    if (row == 0) scale = "0 B";
    std::string line = fmt::format("{:>{}} ", scale, kScaleWidth - 1);
    for (const std::uint64_t value : values) {
      const double eighths = static_cast<double>(value) / top * static_cast<double>(kRows * 8);
      const double here = std::clamp(eighths - static_cast<double>(row * 8), 0.0, 8.0);
      // Little is not nothing: the lowest row shows at least a trace of what is there.
      const auto filled = static_cast<std::size_t>(std::lround(here));
      line += kEighths[row == 0 && value != 0 ? std::max<std::size_t>(filled, 1) : filled];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string end = format_duration_ns(duration_ns);
  text += fmt::format("{:>{}} 0 s{:>{}}\n", "", kScaleWidth - 1, end, columns - 3);
  return text;
}

}  // namespace tidemark
