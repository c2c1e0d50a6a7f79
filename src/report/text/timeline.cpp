#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/units.h"
#include "report/text/parts.h"
#include "report/text/text.h"
#include "report/text/timeline_call_sites.h"
#include "report/words/data_quality.h"

namespace tidemark {
namespace {

constexpr std::size_t kRows = 10;
constexpr std::size_t kScaleWidth = 12;  // of the sizes at the left

// Highest allocated value of each column of the drawing. A value holds until the next point, so also for the columns
// between two points.
std::vector<std::uint64_t> highest(const TimelineSeries& series, std::uint64_t duration_ns, std::size_t columns) {
  std::vector<std::uint64_t> values(columns, 0);
  const double per_ns = static_cast<double>(columns) / static_cast<double>(std::max<std::uint64_t>(duration_ns, 1));
  const auto column_of = [&](std::uint64_t time_ns) {
    return std::min(columns - 1, static_cast<std::size_t>(static_cast<double>(time_ns) * per_ns));
  };
  for (std::size_t index = 0; index < series.points.size(); ++index) {
    const TimelinePoint& point = series.points[index];
    const std::size_t first = column_of(point.time_ns);
    const std::size_t last =
        index + 1 < series.points.size() ? column_of(series.points[index + 1].time_ns) : columns - 1;
    for (std::size_t column = first; column <= last; ++column) {
      values[column] = std::max(values[column], point.allocated_bytes);
    }
  }
  return values;
}

std::string drawing(const TimelineSeries& series, std::uint64_t duration_ns, const Terminal& terminal) {
  static constexpr std::array<const char*, 9> kEighths = {" ",
                                                          "\xE2\x96\x81",
                                                          "\xE2\x96\x82",
                                                          "\xE2\x96\x83",
                                                          "\xE2\x96\x84",
                                                          "\xE2\x96\x85",
                                                          "\xE2\x96\x86",
                                                          "\xE2\x96\x87",
                                                          "\xE2\x96\x88"};
  const std::size_t columns =
      (terminal.width == 0 ? Terminal().width : std::max<std::size_t>(terminal.width, 40)) - kScaleWidth - 1;
  const std::vector<std::uint64_t> values = highest(series, duration_ns, columns);
  const double top = static_cast<double>(std::max<std::uint64_t>(series.peak_allocated_bytes, 1));
  std::string text;
  for (std::size_t row = kRows; row-- > 0;) {
    std::string scale;
    if (row + 1 == kRows) scale = format_bytes(series.peak_allocated_bytes);
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

std::string device_text(const TimelineSeries& series, const Timeline& timeline, const Terminal& terminal) {
  if (!series.peak_allocated_at_ns) {
    return nothing_allocated_text(series.device, {}, series.peak_reserved_bytes) + "\n";
  }
  std::string title = fmt::format("{} allocated: peak {} {}, peak reserved {}", to_string(series.device),
                                  format_bytes(series.peak_allocated_bytes), at_text(series.peak_allocated_at_ns),
                                  bytes_text(series.peak_reserved_bytes));
  if (series.peak_active_bytes) title += ", peak active " + format_bytes(*series.peak_active_bytes);
  return paint(terminal, Tone::heading, title) + "\n" + drawing(series, timeline.recording.duration_ns, terminal) +
         call_sites_text(series, terminal);
}

}  // namespace

std::string to_text(const Timeline& timeline, const Terminal& terminal) {
  std::string text = join_devices(
      timeline.series, [&](const TimelineSeries& series) { return device_text(series, timeline, terminal); });
  for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
    text += fmt::format("out of memory on {} {}: {} requested\n", to_string(failure.device), at_text(failure.time_ns),
                        format_bytes(failure.requested_bytes));
  }
  for (const QualityIssue& issue : timeline.recording.quality.issues) {
    if (issue.id == QualityId::paused) text += quality_text(issue) + "\n";
  }
  if (timeline.series.empty()) text += no_events_text(timeline.recording);
  return text + quality_hint(timeline.recording, terminal);
}

}  // namespace tidemark
