#include "monitor/memory_growth.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

// The number needed to see growth: see find_sample_growth().
constexpr std::uint64_t kFewestSamples = 36;

GrowthVerdict verdict_of(const MemoryGrowth& growth, bool steps_known, double threshold_bytes_per_minute) {
  if (!growth.growth) {
    return growth.sample_count < kFewestSamples && !steps_known ? GrowthVerdict::unknown : GrowthVerdict::none;
  }
  const Slope& rate = growth.growth->bytes_per_minute;
  if (rate.value < threshold_bytes_per_minute) return GrowthVerdict::below_threshold;
  const bool lasts = growth.growth->classification == GrowthClass::leak;
  return lasts && rate.low >= threshold_bytes_per_minute ? GrowthVerdict::growing : GrowthVerdict::uncertain;
}

// Uses the lowest use of each point, as the detector's own history does.
LiveGrowths growths_of(const WatchedUsage& used) {
  GrowthDetector detector;
  for (const WatchedUsagePoint& point : used.points()) {
    detector.add({point.end_ns, point.low_bytes, point.high_bytes, std::nullopt});
  }
  return detector.assess();
}

class Growths {
 public:
  explicit Growths(double threshold) : threshold_(threshold) {}

  void add(MemoryGrowth growth, const WatchedUsage& used, const LiveGrowths& found) {
    if (used.empty()) return;
    growth.first_bytes = used.first_bytes();
    growth.last_bytes = used.last_bytes();
    growth.peak_bytes = used.peak_bytes();
    growth.sample_count = used.sample_count();
    growth.span_seconds = static_cast<double>(used.end_ns() - used.begin_ns()) / kNanosecondsPerSecond;
    growth.growth = found.whole();
    growth.verdict = verdict_of(growth, found.steps_decide(), threshold_);
    found_.push_back(growth);
  }
  void add(const MemoryGrowth& growth, const WatchedUsage& used) { add(growth, used, growths_of(used)); }

  std::vector<MemoryGrowth> take() {
    std::stable_sort(found_.begin(), found_.end(), [](const MemoryGrowth& left, const MemoryGrowth& right) {
      return std::pair(left.memory, -left.bytes_per_minute()) < std::pair(right.memory, -right.bytes_per_minute());
    });
    return std::move(found_);
  }

 private:
  double threshold_;
  std::vector<MemoryGrowth> found_;
};

}  // namespace

std::vector<MemoryGrowth> memory_growth(const MachineState& state, const std::vector<RecordedProcess>& recorded,
                                        double threshold_bytes_per_minute) {
  Growths growths(threshold_bytes_per_minute);
  for (std::size_t n = 0; n < state.devices.size(); ++n) {
    const WatchedDevice& device = state.devices[n];
    if (device.is_host) continue;
    MemoryGrowth growth{GrowingMemory::device, n};
    growths.add(growth, device.used);
  }
  growths.add({GrowingMemory::host}, state.host.used);
  for (std::size_t n = 0; n < state.processes.size(); ++n) {
    const WatchedProcess& process = state.processes[n];
    for (const ProcessOnDevice& on : process.devices) {
      growths.add({GrowingMemory::process_device, on.device, n}, on.used);
    }
    // PSS is read rarely: RSS until there are enough values.
    const bool is_pss = process.pss.sample_count() * 2 > process.rss.points().size();
    growths.add({GrowingMemory::process_host, 0, n, is_pss}, is_pss ? process.pss : process.rss);
  }
  for (std::size_t n = 0; n < recorded.size(); ++n) {
    for (std::size_t on = 0; on < recorded[n].devices.size(); ++on) {
      const RecordedDevice& device = recorded[n].devices[on];
      const LiveGrowths* growth = recorded[n].growth_on(device.device);
      growths.add({GrowingMemory::allocated, on, n}, device.allocated, growth != nullptr ? *growth : LiveGrowths());
    }
  }
  return growths.take();
}

}  // namespace tidemark
