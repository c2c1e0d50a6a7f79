#include "live/memory_growth.h"

#include <algorithm>
#include <utility>

#include "live/risk_tracker.h"

namespace tidemark {
namespace {

GrowthVerdict verdict_of(const MemoryGrowth& growth, double threshold_bytes_per_minute) {
  const UsagePattern pattern = growth.evidence.pattern;
  if (pattern == UsagePattern::unknown) return GrowthVerdict::unknown;
  if (pattern != UsagePattern::growth && pattern != UsagePattern::steps) return GrowthVerdict::none;
  if (growth.bytes_per_minute() <= 0) return GrowthVerdict::none;
  if (growth.bytes_per_minute() < threshold_bytes_per_minute) return GrowthVerdict::below_threshold;
  return growth.bytes_per_minute() - growth.error_bytes_per_minute() >= threshold_bytes_per_minute
             ? GrowthVerdict::growing
             : GrowthVerdict::uncertain;
}

class Growths {
 public:
  explicit Growths(double threshold) : threshold_(threshold) {}

  void add(MemoryGrowth growth, const WatchedUsage& used, RiskAssessment evidence) {
    if (used.empty()) return;
    growth.first_bytes = used.first_bytes();
    growth.last_bytes = used.last_bytes();
    growth.peak_bytes = used.peak_bytes();
    growth.evidence = evidence;
    growth.verdict = verdict_of(growth, threshold_);
    found_.push_back(growth);
  }
  void add(MemoryGrowth growth, const WatchedUsage& used) { add(growth, used, assess_history(used)); }

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
    growths.add(growth, device.used, device.risk);
  }
  growths.add({GrowingMemory::host}, state.host.used, state.host.risk);
  for (std::size_t n = 0; n < state.processes.size(); ++n) {
    const WatchedProcess& process = state.processes[n];
    for (const ProcessOnDevice& on : process.devices) {
      growths.add({GrowingMemory::process_device, on.device, n}, on.used);
    }
    // PSS is read rarely: RSS until there is enough of it.
    const bool is_pss = process.pss.sample_count() * 2 > process.rss.points().size();
    growths.add({GrowingMemory::process_host, 0, n, is_pss}, is_pss ? process.pss : process.rss);
  }
  for (std::size_t n = 0; n < recorded.size(); ++n) {
    for (std::size_t on = 0; on < recorded[n].devices.size(); ++on) {
      growths.add({GrowingMemory::allocated, on, n}, recorded[n].devices[on].allocated);
    }
  }
  return growths.take();
}

}  // namespace tidemark
