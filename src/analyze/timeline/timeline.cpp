#include "analyze/timeline/timeline.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/common/devices.h"
#include "analyze/common/thinner.h"
#include "analyze/common/totals.h"
#include "analyze/usage/driver_memory.h"

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
  /// `all`: of all memory of the device, not of some blocks.
  SeriesBuilder(const Overview& overview, const DeviceSummary& summary, bool all, std::size_t points)
      : series_(describe(overview, summary, all)),
        thinner_(overview.end_ns, points, measures_of(series_), series_.points) {
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
  static TimelineSeries describe(const Overview& overview, const DeviceSummary& summary, bool all) {
    TimelineSeries series;
    series.device = summary.device;
    series.peak_allocated_bytes = summary.peak_allocated_bytes;
    series.peak_allocated_at_ns = summary.peak_allocated_at_ns;
    series.peak_reserved_bytes = summary.peak_reserved_bytes;
    series.peak_active_bytes = summary.peak_active_bytes;
    if (all && DriverBytes::known(overview, summary.device)) series.peak_driver_bytes = 0;
    return series;
  }

  TimelineSeries series_;
  TimelinePoint last_;
  PointThinner thinner_;
};

// What the chosen blocks held, change by change.
template <typename Visit>
void walk_chosen(const Store& store, const BlockFilter& filter, const Visit& visit) {
  std::vector<std::uint64_t> held(store.devices.size());
  for (std::size_t index = 0; index < store.live_changes.size(); ++index) {
    const LiveChange& change = store.live_changes[index];
    const std::size_t block = change.block.value;
    if (!filter(block)) continue;
    const std::size_t device = store.blocks.device[block];
    held[device] += change.birth ? store.blocks.size[block] : 0 - store.blocks.size[block];
    visit(DeviceTotals{device, change.time_ns, index + 1, held[device], std::nullopt, std::nullopt});
  }
}

// Devices that hold nothing but the chosen blocks.
std::vector<DeviceSummary> chosen_devices(const Store& store, const BlockFilter& filter) {
  if (filter.all()) return store.devices;
  std::vector<DeviceSummary> devices;
  for (const DeviceSummary& summary : store.devices) devices.emplace_back().device = summary.device;
  walk_chosen(store, filter, [&](const DeviceTotals& totals) {
    DeviceSummary& summary = devices[totals.device];
    if (totals.allocated_bytes <= summary.peak_allocated_bytes) return;
    summary.peak_allocated_bytes = totals.allocated_bytes;
    summary.peak_allocated_at_ns = totals.time_ns;
  });
  return devices;
}

}  // namespace

Result<Timeline> analyze_timeline(const Store& store, const Symbols& symbols, const TimelineOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  const std::size_t points = std::max<std::size_t>(options.points, 8);
  const bool all = options.filter.all();
  const std::vector<DeviceSummary> devices = chosen_devices(store, options.filter);
  std::deque<SeriesBuilder> builders;
  std::vector<SeriesBuilder*> builder_of(store.devices.size());
  for (const std::size_t device : *selected) {
    builder_of[device] = &builders.emplace_back(store, devices[device], all, points);
  }
  const auto take = [&](const DeviceTotals& totals) {
    if (builder_of[totals.device] != nullptr) builder_of[totals.device]->take(totals);
  };
  DriverBytes driver(store);
  if (!all) walk_chosen(store, options.filter, take);
  if (all)
    walk_totals(store, [&](const DeviceTotals& totals) {
      take(totals);
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
