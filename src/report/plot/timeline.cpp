#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "query/words/recording_text.h"
#include "report/plot/bands.h"
#include "report/plot/layers.h"
#include "report/plot/plots.h"
#include "report/plot/time_plot.h"

namespace tidemark {
namespace {

using plot_layout::kAreaOpacity;
using Sample = PlotKey::Sample;

std::uint64_t highest_bytes(const TimelineSeries& series) {
  return std::max({series.peak_allocated_bytes,
                   series.peak_reserved_bytes.value_or(series.peak_active_bytes.value_or(0)),
                   series.peak_driver_bytes.value_or(0)});
}

std::vector<std::string> hint_words(const TimelinePoint& point) {
  std::vector<std::string> words = {"allocated " + format_bytes(point.allocated_bytes)};
  if (point.active_bytes) words.push_back("active " + format_bytes(*point.active_bytes));
  if (point.reserved_bytes) words.push_back("reserved " + format_bytes(*point.reserved_bytes));
  if (point.driver_bytes) words.push_back("driver memory of libraries " + format_bytes(*point.driver_bytes));
  return words;
}

}  // namespace

Plot timeline_plot(const Timeline& timeline, const TimelineSeries& series, const TimeFrame& frame,
                   const TimelineLayers* split) {
  const std::vector<PlotLayer> layers = split == nullptr ? std::vector<PlotLayer>() : plot_layers(*split);
  TimePlot time(frame, std::max(highest_bytes(series), highest_bytes(layers)), bands_height(timeline.bands));
  Plot& plot = time.plot();
  plot.description = fmt::format("Memory of {} over time: peak allocated {} {}", to_string(series.device),
                                 format_bytes(series.peak_allocated_bytes), at_text(series.peak_allocated_at_ns));
  if (!timeline.pauses.empty()) {
    time.add_band(Role::quiet, kAreaOpacity, timeline.pauses);
    plot.legend.push_back({Role::quiet, Sample::area, "recording paused"});
  }
  add_layers(time, series.points, layers);
  const bool layered = !layers.empty();
  time.add_curve(layered ? Role::ink : Role::allocated, layered ? 0.7 : 1, layered ? 0 : kAreaOpacity, series.points,
                 [](const TimelinePoint& point) { return point.allocated_bytes; });
  if (!layered) plot.legend.push_back({Role::allocated, Sample::area, "allocated"});
  if (series.active_differs()) {  // otherwise it would hide allocated
    time.add_curve(Role::active, 1.4, 0, series.points, [](const TimelinePoint& point) { return point.active_bytes; });
    plot.legend.push_back({Role::active, Sample::line, "active: allocated, or freed and still in use by a stream"});
  }
  if (series.peak_reserved_bytes) {
    time.add_curve(Role::reserved, 1.8, 0, series.points,
                   [](const TimelinePoint& point) { return point.reserved_bytes; });
    plot.legend.push_back({Role::reserved, Sample::line, "reserved"});
  }
  if (series.peak_driver_at_ns) {
    time.add_curve(Role::driver, 1.4, 0, series.points, [](const TimelinePoint& point) { return point.driver_bytes; });
    plot.legend.push_back({Role::driver, Sample::line, "driver memory of libraries, outside PyTorch's allocator"});
  }
  time.add_hints(series.points, [&](std::size_t index) {
    std::vector<std::string> words = hint_words(series.points[index]);
    for (std::string& layer : layer_words(layers, index)) words.push_back(std::move(layer));
    return words;
  });
  for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
    if (failure.device != series.device) continue;
    time.add_mark(failure.time_ns, {fmt::format("out of memory {}: {} requested", at_text(failure.time_ns),
                                                format_bytes(failure.requested_bytes))});
  }
  if (!plot.marks.empty()) plot.legend.push_back({Role::alarm, Sample::line, "out of memory"});
  add_bands(time, timeline);
  if (series.peak_allocated_at_ns) {
    time.label_peak(layered ? Role::ink : Role::allocated, *series.peak_allocated_at_ns, series.peak_allocated_bytes);
  }
  return time.take();
}

}  // namespace tidemark
