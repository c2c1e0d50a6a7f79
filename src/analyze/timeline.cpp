#include "analyze/timeline.h"

#include <algorithm>
#include <array>

#include "analyze/moment.h"

namespace tidemark {
namespace {

// Keeps the extremes of one stretch of the run at a time.
class Thinner {
  struct Kept {
    TimelinePoint point;
    std::uint64_t order = 0;
  };

 public:
  Thinner(std::uint64_t end_ns, std::size_t points, std::vector<TimelinePoint>& out)
      : stretch_ns_(end_ns / std::max<std::size_t>(1, points / 4 - 1) + 1), out_(out) {}

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
  }

  /// `last` is kept whatever its value.
  void finish(const TimelinePoint& last) {
    flush();
    out_.push_back(last);
  }

 private:
  void flush() {
    if (count_ == 0) return;
    std::sort(kept_.begin(), kept_.end(), [](const Kept& left, const Kept& right) { return left.order < right.order; });
    for (std::size_t index = 0; index < kept_.size(); ++index) {
      if (index == 0 || kept_[index].order != kept_[index - 1].order) out_.push_back(kept_[index].point);
    }
    count_ = 0;
  }

  std::uint64_t stretch_ns_;
  std::vector<TimelinePoint>& out_;
  std::array<Kept, 4> kept_;  // lowest and highest allocated, lowest and highest reserved
  std::uint64_t stretch_ = 0;
  std::uint64_t count_ = 0;
};

// Replays one device: steps, and changes of its totals, in the order in which they happened.
class Replay {
 public:
  Replay(const Store& store, std::size_t device, Thinner& thinner)
      : store_(store), device_(device), thinner_(thinner), change_(store.changes.begin()) {}

  void run() {
    for (std::size_t index = 0; index < store_.steps.size(); ++index) {
      take_changes_before(index);
      const Step& step = store_.steps[index];
      const std::size_t block = step.block.value;
      const bool ours = store_.blocks.device[block] == device_;
      const std::uint64_t size = store_.blocks.size[block];
      if (ours) recorded_ = step.birth ? recorded_ + size : recorded_ - size;
      // A change that came with this step is part of the same point: between the two nothing was ever true.
      if (change_ != store_.changes.end() && change_->with_step && change_->step_count == index + 1) take_change();
      if (ours) add_point(step.time_ns);
    }
    take_changes_before(store_.steps.size());
    thinner_.finish(point_at(store_.end_ns));
  }

 private:
  void take_changes_before(std::size_t step) {
    while (change_ != store_.changes.end() && change_->step_count <= step) {
      const std::uint64_t time_ns = change_->time_ns;
      if (take_change()) add_point(time_ns);
    }
  }

  // Moves past one change; whether it was of this device.
  bool take_change() {
    const TotalsChange& change = *change_++;
    if (change.device != device_) return false;
    unrecorded_ = change.unrecorded;
    reserved_ = change.reserved;
    return true;
  }

  [[nodiscard]] TimelinePoint point_at(std::uint64_t time_ns) const {
    return {time_ns, recorded_ + static_cast<std::uint64_t>(unrecorded_), reserved_};
  }
  void add_point(std::uint64_t time_ns) { thinner_.add(point_at(time_ns)); }

  const Store& store_;
  const std::size_t device_;
  Thinner& thinner_;
  std::vector<TotalsChange>::const_iterator change_;
  std::uint64_t recorded_ = 0;
  std::int64_t unrecorded_ = 0;
  std::optional<std::uint64_t> reserved_;
};

}  // namespace

Result<Timeline> analyze_timeline(const Store& store, const Symbols& symbols, const TimelineOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  Timeline timeline;
  for (const std::size_t device : *selected) {
    const DeviceSummary& summary = store.devices[device];
    TimelineSeries& series = timeline.series.emplace_back();
    series.device = summary.device;
    series.peak_allocated_bytes = summary.peak_allocated_bytes;
    series.peak_allocated_at_ns = summary.peak_allocated_at_ns;
    series.peak_reserved_bytes = summary.peak_reserved_bytes;
    Thinner thinner(store.end_ns, std::max<std::size_t>(options.points, 8), series.points);
    Replay(store, device, thinner).run();
  }
  for (const OutOfMemory& event : store.out_of_memory) {
    if (std::find(selected->begin(), selected->end(), event.device) == selected->end()) continue;
    timeline.out_of_memory.push_back({event.time_ns, event.requested, store.devices[event.device].device});
  }
  timeline.recording = describe_recording(store, symbols);
  return timeline;
}

}  // namespace tidemark
