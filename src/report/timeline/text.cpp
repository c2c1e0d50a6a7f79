#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/timeline/host_timeline.h"
#include "analyze/timeline/timeline.h"
#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/data_quality.h"
#include "query/words/printable.h"
#include "report/common/columns.h"
#include "report/common/terminal.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

// Memory of each layer at the peak and at the end; empty without TimelineSeries::splits.
std::string layers_text(const TimelineSeries& series, const Terminal& terminal) {
  if (series.splits.empty() || series.points.empty()) return {};
  const TimelineLayers& split = series.splits.front();
  const auto highest = std::max_element(series.points.begin(), series.points.end(),
                                        [](const TimelinePoint& left, const TimelinePoint& right) {
                                          return left.allocated_bytes < right.allocated_bytes;
                                        });
  const auto peak = static_cast<std::size_t>(highest - series.points.begin());
  Columns columns({"at peak", "at end", split.by ? std::string(name_in(kOwnerKindNames, *split.by)) : "call site"});
  const auto add = [&](const std::vector<std::uint64_t>& bytes, FittedText name) {
    columns.add({format_bytes(bytes[peak]), format_bytes(bytes.back())}, std::move(name));
  };
  for (const TimelineLayers::Layer& layer : split.layers) {
    if (!split.by) {
      add(layer.bytes, fitted(layer.stack));
    } else {
      add(layer.bytes, [words = owner_text(layer.owner)](std::size_t width) { return fit(words, width); });
    }
  }
  const auto add_rest = [&](const std::vector<std::uint64_t>& bytes, const char* words) {
    if (bytes[peak] != 0 || bytes.back() != 0) add(bytes, [words](std::size_t) { return words; });
  };
  add_rest(split.other, split.by ? "(others)" : "(other call sites)");
  add_rest(split.unrecorded, "(not recorded)");
  return "\n" + columns.text(terminal, 2);
}

/// Width of the scale at the left of a drawing.
constexpr std::size_t kScaleWidth = 12;

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

// How many letters wide a drawing is, beside that.
std::size_t drawing_columns(const Terminal& terminal) {
  return (terminal.width == 0 ? Terminal().width : std::max<std::size_t>(terminal.width, 40)) - kScaleWidth - 1;
}

// Ten rows as wide as the terminal, with the scale at the left and the times below. Each column is as high as the
// highest value in it; `highest` fills it. Points are in order of time.
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
      // A small value is not zero: the lowest row shows at least a trace of it.
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

// "d": the first letters differ.
char letter_of(Phase phase) {
  return name_in(kPhaseNames, phase).front();
}

std::string band_line(const char* name, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return fmt::format("{:>{}} {}\n", name, kScaleWidth - 1, line);
}

std::string steps_line(const std::vector<TimelineStep>& steps, std::uint64_t duration_ns, std::size_t columns) {
  constexpr std::size_t kColumnsOfStep = 6;
  const double per_ns = static_cast<double>(columns) / static_cast<double>(std::max<std::uint64_t>(duration_ns, 1));
  const std::size_t stride = step_stride(steps.size(), columns / kColumnsOfStep);
  std::string line(columns, ' ');
  std::size_t free = 0;  // the first column after the number before
  for (std::size_t index = 0; index < steps.size(); index += stride) {
    const std::string words = fmt::format("|{}", steps[index].number);
    const auto column = static_cast<std::size_t>(static_cast<double>(steps[index].begin_ns) * per_ns);
    if (column < free || column + words.size() > columns) continue;
    line.replace(column, words.size(), words);
    free = column + words.size() + 1;
  }
  return line;
}

// Lines as wide as those of area_chart(): the starts of steps, with numbers if there is room, and the phase with the
// largest share of each column. Unknown ones are left out.
std::string bands_text(const TimelineBands& bands, std::uint64_t duration_ns, const Terminal& terminal) {
  const std::size_t columns = drawing_columns(terminal);
  std::string text;
  if (!bands.steps.empty()) text += band_line("steps", steps_line(bands.steps, duration_ns, columns));
  const std::vector<std::optional<Phase>> cells = phase_cells(bands, duration_ns, columns);
  std::string line;
  for (const std::optional<Phase> phase : cells) line += phase ? letter_of(*phase) : ' ';
  std::string legend;
  for (const EnumName<Phase>& phase : kPhaseNames) {
    if (std::find(cells.begin(), cells.end(), phase.value) == cells.end()) continue;
    legend += fmt::format("{}{} {}", legend.empty() ? "" : ", ", letter_of(phase.value), phase.name);
  }
  if (!legend.empty()) text += band_line("phases", line) + band_line("", legend);
  return text;
}

std::vector<TimedBytes> allocated(const TimelineSeries& series) {
  std::vector<TimedBytes> points;
  points.reserve(series.points.size());
  for (const TimelinePoint& point : series.points) points.push_back({point.time_ns, point.allocated_bytes});
  return points;
}

std::vector<TimedBytes> held_by_libraries(const TimelineSeries& series) {
  std::vector<TimedBytes> points;
  points.reserve(series.points.size());
  for (const TimelinePoint& point : series.points) points.push_back({point.time_ns, point.driver_bytes.value_or(0)});
  return points;
}

std::string device_text(const Timeline& timeline, const TimelineSeries& series, std::uint64_t duration_ns,
                        const Terminal& terminal) {
  std::string text;
  if (series.peak_allocated_at_ns) {
    std::string title = fmt::format("{} allocated: peak {} {}, peak reserved {}", to_string(series.device),
                                    format_bytes(series.peak_allocated_bytes), at_text(series.peak_allocated_at_ns),
                                    bytes_text(series.peak_reserved_bytes));
    if (series.peak_active_bytes) title += ", peak active " + format_bytes(*series.peak_active_bytes);
    text = paint(terminal, Tone::heading, title) + "\n" +
           area_chart(allocated(series), series.peak_allocated_bytes, duration_ns, terminal) +
           bands_text(timeline.bands, duration_ns, terminal) + layers_text(series, terminal);
  } else {
    text = nothing_allocated_text(series.device, {}, series.peak_reserved_bytes) + "\n";
  }
  if (!series.peak_driver_at_ns) return text;
  const std::string title =
      fmt::format("{} driver memory of libraries, outside PyTorch's allocator: peak {} {}", to_string(series.device),
                  format_bytes(*series.peak_driver_bytes), at_text(series.peak_driver_at_ns));
  return text + "\n" + paint(terminal, Tone::heading, title) + "\n" +
         area_chart(held_by_libraries(series), *series.peak_driver_bytes, duration_ns, terminal);
}

std::string host_text(const HostTimeline& host, std::uint64_t duration_ns, const Terminal& terminal) {
  std::string title = "host memory of the process, sampled: ";
  if (host.rss) title += fmt::format("peak RSS {} {}", format_bytes(host.rss->peak), at_text(host.rss->peak_at_ns));
  if (host.rss && host.pss) title += ", ";
  if (host.pss) title += fmt::format("peak PSS {} {}", format_bytes(host.pss->peak), at_text(host.pss->peak_at_ns));
  const SampledOverTime& drawn = host.rss ? *host.rss : *host.pss;
  return paint(terminal, Tone::heading, title) + "\n" + area_chart(drawn.points, drawn.peak, duration_ns, terminal);
}

}  // namespace

std::string to_text(const Timeline& timeline, const Terminal& terminal) {
  std::uint64_t duration_ns = timeline.recording.duration_ns;
  if (timeline.host) duration_ns = std::max(duration_ns, timeline.host->end_ns());
  std::string text = join_devices(timeline.series, [&](const TimelineSeries& series) {
    return device_text(timeline, series, duration_ns, terminal);
  });
  if (timeline.host) text += (text.empty() ? "" : "\n") + host_text(*timeline.host, duration_ns, terminal);
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
