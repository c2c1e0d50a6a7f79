#include "monitor/risk_tracker.h"

#include <algorithm>
#include <string>

namespace tidemark {
namespace {

// Of the process that has most of the device; of the host's memory, of the one that has most of any.
const ProcessSteps* steps_on(const MachineState& state, const std::string* device) {
  const ProcessSteps* most = nullptr;
  for (const ProcessSteps& steps : state.steps) {
    if (device != nullptr && steps.device != *device) continue;
    if (most == nullptr || steps.reserved_bytes > most->reserved_bytes) most = &steps;
  }
  return most;
}

}  // namespace

void TrackedMemory::take(const WatchedUsage& used, const ProcessSteps* of) {
  if (used.sample_count() == samples) return;
  samples = used.sample_count();
  const WatchedSample& sample = used.last_sample();
  std::optional<std::uint64_t> counted;
  if (of != nullptr) {
    if (pid == of->pid) steps += of->steps - std::min(its_steps, of->steps);
    pid = of->pid;
    its_steps = of->steps;
    counted = steps;
  }
  const std::uint64_t peak = std::max(sample.high_bytes, used.late_peak_bytes());
  forecaster.add({sample.time_ns, sample.bytes, peak, counted});
}

void RiskTracker::add(const MachineState& state) {
  while (devices_.size() < state.devices.size()) devices_.push_back({Forecaster(options_)});
  for (std::size_t n = 0; n < devices_.size(); ++n) {
    const WatchedDevice& device = state.devices[n];
    devices_[n].take(device.used, steps_on(state, device.is_host ? nullptr : &device.key));
  }
  host_.take(state.host.used, steps_on(state, nullptr));
}

bool RiskTracker::assess(MachineState& state, bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && !pace_.due(time)) return false;
  const std::chrono::nanoseconds before = processor_time();
  for (std::size_t n = 0; n < devices_.size(); ++n) {
    WatchedDevice& device = state.devices[n];
    if (!device.lost.empty()) {
      device.risk = {};  // nobody knows what it has now
      device.assessed_at_ns.reset();
    }
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

}  // namespace tidemark
