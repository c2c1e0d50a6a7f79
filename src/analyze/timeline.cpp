#include "analyze/timeline.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/common/devices.h"
#include "analyze/common/thinner.h"
#include "analyze/common/totals.h"
#include "analyze/driver_memory.h"

namespace tidemark {
namespace {

using PointThinner = Thinner<TimelinePoint>;

std::vector<PointThinner::Measure> measures_of(const TimelineSeries& series) {
  std::vector<PointThinner::Measure> measures = {
      [](const TimelinePoint& point) { return std::optional(point.allocated_bytes); },
      [](const TimelinePoint& point) { return point.reserved_bytes; }};
  if (series.peak_active_bytes) {
    measures.push_back([](const TimelinePoint& point) { return point.active_bytes; });
  }
  if (series.peak_driver_bytes) {
    measures.push_back([](const TimelinePoint& point) { return point.driver_bytes; });
  }
  return measures;
}

// The points of one device. Stays where it is.
class SeriesBuilder {
 public:
  SeriesBuilder(const Overview& overview, const DeviceSummary& summary, std::size_t points)
      : series_(describe(overview, summary)), thinner_(overview.end_ns, points, measures_of(series_), series_.points) {
    last_.allocated_bytes = summary.baseline_bytes.value_or(0);
    last_.driver_bytes = series_.peak_driver_bytes;
  }

  [[nodiscard]] Device device() const { return series_.device; }
  void take(const DeviceTotals& totals) {
    last_ = {totals.time_ns,      totals.allocated_bytes, totals.reserved_bytes,
             totals.active_bytes, last_.driver_bytes,     totals.change_count};
    thinner_.add(last_);
  }
  void take_driver(const DeviceTotals& totals, std::uint64_t bytes) {
    last_.time_ns = totals.time_ns;
    last_.change_count = totals.change_count;
    last_.driver_bytes = bytes;
    if (bytes > series_.peak_driver_bytes) {
      series_.peak_driver_bytes = bytes;
      series_.peak_driver_at_ns = totals.time_ns;
    }
    thinner_.add(last_);
  }
  [[nodiscard]] TimelineSeries finish(std::uint64_t end_ns) {
    thinner_.flush();
    last_.time_ns = end_ns;
    series_.points.push_back(last_);
    return std::move(series_);
  }

 private:
  static TimelineSeries describe(const Overview& overview, const DeviceSummary& summary) {
    TimelineSeries series;
    series.device = summary.device;
    series.peak_allocated_bytes = summary.peak_allocated_bytes;
    series.peak_allocated_at_ns = summary.peak_allocated_at_ns;
    series.peak_reserved_bytes = summary.peak_reserved_bytes;
    series.peak_active_bytes = summary.peak_active_bytes;
    if (DriverMemory::known(overview, summary.device)) series.peak_driver_bytes = 0;
    return series;
  }

  TimelineSeries series_;
  TimelinePoint last_;
  PointThinner thinner_;
};

}  // namespace

Result<Timeline> analyze_timeline(const Store& store, const Symbols& symbols, const TimelineOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  const std::size_t points = std::max<std::size_t>(options.points, 8);
  std::deque<SeriesBuilder> builders;
  std::vector<SeriesBuilder*> builder_of(store.devices.size());
  for (const std::size_t device : *selected) {
    builder_of[device] = &builders.emplace_back(store, store.devices[device], points);
  }
  DriverMemory driver(store);
  walk_totals(store, [&](const DeviceTotals& totals) {
    if (builder_of[totals.device] != nullptr) builder_of[totals.device]->take(totals);
    const auto gpu = driver.take(totals);
    if (!gpu) return;
    for (SeriesBuilder& builder : builders) {
      if (builder.device() == *gpu) builder.take_driver(totals, driver.bytes(*gpu));
    }
  });
  Timeline timeline;
  for (SeriesBuilder& builder : builders) timeline.series.push_back(builder.finish(store.end_ns));
  for (const OutOfMemory& event : store.out_of_memory) {
    if (std::find(selected->begin(), selected->end(), event.device) == selected->end()) continue;
    timeline.out_of_memory.push_back({event.time_ns, event.requested, store.devices[event.device].device});
  }
  timeline.pauses = store.pauses;
  timeline.host = host_timeline(store.samples.host, points);
  timeline.recording = describe_recording(store, symbols);
  return timeline;
}

}  // namespace tidemark
