#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units.h"
#include "query/words/data_quality.h"
#include "report/common/text_parts.h"
#include "report/timeline/area_chart.h"
#include "report/timeline/bands_text.h"
#include "report/timeline/layers_text.h"

namespace tidemark {
namespace {

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
