#include "analyze/timeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "analyze/common/devices.h"
#include "analyze/common/totals.h"

namespace tidemark {
namespace {

// Keeps the extremes of one stretch of the run at a time.
class Thinner {
  struct Kept {
    TimelinePoint point;
    std::uint64_t order = 0;
  };

 public:
  Thinner(std::uint64_t end_ns, std::size_t points, bool knows_active, std::vector<TimelinePoint>& out)
      : extremes_(knows_active ? 6 : 4),
        stretch_ns_(end_ns / (std::max<std::size_t>(2, points / extremes_) - 1) + 1),
        out_(out) {}

  void add(const TimelinePoint& point) {
    const std::uint64_t stretch = point.time_ns / stretch_ns_;
    if (count_ != 0 && stretch != stretch_) flush();
    stretch_ = stretch;
    const Kept kept = {point, count_++};
    if (kept.order == 0) {
      kept_.fill(kept);
      return;
    }
    // Strict comparisons: the first of equals stays, as in DeviceSummary.
    if (point.allocated_bytes < kept_[0].point.allocated_bytes) kept_[0] = kept;
    if (point.allocated_bytes > kept_[1].point.allocated_bytes) kept_[1] = kept;
    if (point.reserved_bytes < kept_[2].point.reserved_bytes) kept_[2] = kept;
    if (point.reserved_bytes > kept_[3].point.reserved_bytes) kept_[3] = kept;
    if (point.active_bytes < kept_[4].point.active_bytes) kept_[4] = kept;
    if (point.active_bytes > kept_[5].point.active_bytes) kept_[5] = kept;
  }

  /// `last` is kept whatever its value.
  void finish(const TimelinePoint& last) {
    flush();
    out_.push_back(last);
  }

 private:
  void flush() {
    if (count_ == 0) return;
    const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(extremes_);
    std::sort(kept_.begin(), end, [](const Kept& left, const Kept& right) { return left.order < right.order; });
    for (std::size_t index = 0; index < extremes_; ++index) {
      if (index == 0 || kept_[index].order != kept_[index - 1].order) out_.push_back(kept_[index].point);
    }
    count_ = 0;
  }

  std::size_t extremes_;  // that are kept: without the last two where active is not known
  std::uint64_t stretch_ns_;
  std::vector<TimelinePoint>& out_;
  std::array<Kept, 6> kept_;  // lowest and highest allocated, reserved, active
  std::uint64_t stretch_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

Result<Timeline> analyze_timeline(const Store& store, const Symbols& symbols, const TimelineOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  Timeline timeline;
  timeline.series.reserve(selected->size());  // the thinners write into them
  std::vector<Thinner> thinners;
  thinners.reserve(selected->size());
  std::vector<std::optional<std::size_t>> series_of(store.devices.size());
  for (const std::size_t device : *selected) {
    const DeviceSummary& summary = store.devices[device];
    series_of[device] = timeline.series.size();
    TimelineSeries& series = timeline.series.emplace_back();
    series.device = summary.device;
    series.peak_allocated_bytes = summary.peak_allocated_bytes;
    series.peak_allocated_at_ns = summary.peak_allocated_at_ns;
    series.peak_reserved_bytes = summary.peak_reserved_bytes;
    series.peak_active_bytes = summary.peak_active_bytes;
    thinners.emplace_back(store.end_ns, std::max<std::size_t>(options.points, 8), summary.peak_active_bytes.has_value(),
                          series.points);
  }
  std::vector<TimelinePoint> last(selected->size());
  walk_totals(store, [&](const DeviceTotals& totals) {
    if (const auto series = series_of[totals.device]) {
      last[*series] = {totals.time_ns, totals.allocated_bytes, totals.reserved_bytes, totals.active_bytes,
                       totals.change_count};
      thinners[*series].add(last[*series]);
    }
  });
  for (std::size_t series = 0; series < thinners.size(); ++series) {
    last[series].time_ns = store.end_ns;
    thinners[series].finish(last[series]);
  }
  for (const OutOfMemory& event : store.out_of_memory) {
    if (std::find(selected->begin(), selected->end(), event.device) == selected->end()) continue;
    timeline.out_of_memory.push_back({event.time_ns, event.requested, store.devices[event.device].device});
  }
  timeline.pauses = store.pauses;
  timeline.recording = describe_recording(store, symbols);
  return timeline;
}

}  // namespace tidemark
