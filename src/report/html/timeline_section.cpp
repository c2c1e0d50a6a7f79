#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/html/time_plot.h"
#include "report/words/recording.h"

namespace tidemark::html {
namespace {

std::uint64_t highest(const TimelineSeries& series) {
  return std::max(series.peak_allocated_bytes,
                  series.peak_reserved_bytes.value_or(series.peak_active_bytes.value_or(0)));
}

void add_curves(TimePlot& plot, const TimelineSeries& series) {
  if (series.points.empty()) return;
  plot.open_curves();
  const std::string allocated =
      plot.steps(series.points, [](const TimelinePoint& point) { return point.allocated_bytes; });
  plot.area("allocated area", allocated, series.points.front().time_ns);
  plot.line("allocated", allocated);
  if (series.active_differs()) {
    plot.line("active", plot.steps(series.points, [](const TimelinePoint& point) { return point.active_bytes; }));
  }
  if (series.peak_reserved_bytes) {
    plot.line("reserved", plot.steps(series.points, [](const TimelinePoint& point) { return point.reserved_bytes; }));
  }
  plot.close_curves();
}

void add_hints(TimePlot& plot, const TimelineSeries& series) {
  std::vector<std::uint64_t> times;
  times.reserve(series.points.size());
  for (const TimelinePoint& point : series.points) times.push_back(point.time_ns);
  plot.hints(times, [&](std::size_t index) {
    const TimelinePoint& point = series.points[index];
    std::string words = "\nallocated " + format_bytes(point.allocated_bytes);
    if (point.active_bytes) words += "\nactive " + format_bytes(*point.active_bytes);
    if (point.reserved_bytes) words += "\nreserved " + format_bytes(*point.reserved_bytes);
    return words;
  });
}

void add_series(std::string& out, const Timeline& timeline, const TimelineSeries& series) {
  add_device_heading(out, series.device);
  const auto fails = [&](const TimelineOutOfMemory& event) { return event.device == series.device; };
  std::vector<Key> keys = {{"allocated", "allocated"}};
  if (series.active_differs()) keys.push_back({"active line", "active: allocated, or given back but still in use"});
  if (series.peak_reserved_bytes) keys.push_back({"reserved line", "reserved"});
  if (std::any_of(timeline.out_of_memory.begin(), timeline.out_of_memory.end(), fails)) {
    keys.push_back({"alarm line", "out of memory"});
  }
  add_legend(out, keys);
  TimePlot plot(out, timeline.recording.duration_ns, highest(series));
  plot.open(fmt::format("Memory of {} over time: peak allocated {} {}", to_string(series.device),
                        format_bytes(series.peak_allocated_bytes), at_text(series.peak_allocated_at_ns)));
  add_curves(plot, series);
  add_hints(plot, series);
  for (const TimelineOutOfMemory& event : timeline.out_of_memory) {
    if (!fails(event)) continue;
    plot.failure(event.time_ns, fmt::format("out of memory {}: {} requested", at_text(event.time_ns),
                                            format_bytes(event.requested_bytes)));
  }
  if (series.peak_allocated_at_ns) {
    plot.label_point(*series.peak_allocated_at_ns, series.peak_allocated_bytes,
                     fmt::format("peak {} at {}", format_bytes(series.peak_allocated_bytes),
                                 format_duration_ns(*series.peak_allocated_at_ns)));
  }
  plot.close();
}

}  // namespace

void add_timeline(std::string& out, const Report& report, const std::string& id) {
  if (report.timeline.series.empty()) return;
  open_section(out, id + "timeline", "Memory over time",
               "Time since the recording began. Every peak is drawn at its exact height, however short it was.");
  for (const TimelineSeries& series : report.timeline.series) add_series(out, report.timeline, series);
  out += kSectionEnd;
}

}  // namespace tidemark::html
