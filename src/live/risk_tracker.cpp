#include "live/risk_tracker.h"

#include <time.h>

namespace tidemark {
namespace {

std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

void RiskTracker::take(Tracked& tracked, const WatchedUsage& used) {
  if (used.sample_count() == tracked.samples) return;
  tracked.samples = used.sample_count();
  const WatchedUsagePoint& sample = used.last_sample();
  tracked.forecaster.add({sample.end_ns, sample.last_bytes, sample.high_bytes, std::nullopt});
}

void RiskTracker::add(const MachineState& state) {
  while (devices_.size() < state.devices.size()) devices_.push_back({Forecaster(options_), 0});
  for (std::size_t n = 0; n < devices_.size(); ++n) take(devices_[n], state.devices[n].used);
  take(host_, state.host.used);
}

bool RiskTracker::assess(MachineState& state, bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && !pace_.due(time)) return false;
  const std::chrono::nanoseconds before = processor_time();
  for (std::size_t n = 0; n < devices_.size(); ++n) {
    WatchedDevice& device = state.devices[n];
    if (!device.lost.empty() || device.used.empty()) continue;
    device.risk = devices_[n].forecaster.assess(device.limit_bytes());
    device.assessed_at_ns = device.used.end_ns();
  }
  if (!state.host.used.empty()) {
    state.host.risk = host_.forecaster.assess(state.host.limit_bytes());
    state.host.assessed_at_ns = state.host.used.end_ns();
  }
  const std::chrono::nanoseconds cost = processor_time() - before;
  pace_.done(time, cost, cost);
  return true;
}

RiskAssessment assess_history(const WatchedUsage& used, std::optional<std::uint64_t> limit_bytes,
                              const ForecastOptions& options) {
  Forecaster forecaster(options);
  for (const WatchedUsagePoint& point : used.points()) {
    forecaster.add({point.end_ns, point.last_bytes, point.high_bytes, std::nullopt});
  }
  return forecaster.assess(limit_bytes);
}

}  // namespace tidemark
