#include "monitor/risk_tracker.h"

#include <algorithm>
#include <optional>
#include <string>

namespace tidemark {
namespace {

// Steps of the process with the most memory on the device; for the host's memory, with the most on any device.
const ProcessSteps* steps_on(const MachineState& state, const std::string* device) {
  const ProcessSteps* most = nullptr;
  for (const ProcessSteps& steps : state.steps) {
    if (device != nullptr && steps.device != *device) continue;
    if (most == nullptr || steps.reserved_bytes > most->reserved_bytes) most = &steps;
  }
  return most;
}

const ProcessSteps* steps_of(const MachineState& state, std::int64_t pid, const std::string* device) {
  for (const ProcessSteps& steps : state.steps) {
    if (steps.pid == pid && (device == nullptr || steps.device == *device)) return &steps;
  }
  return nullptr;
}

// The process's bytes plus the free bytes; at most the total, as the two are not read at the same time.
std::optional<std::uint64_t> limit_of(const std::optional<std::uint64_t>& bytes,
                                      const std::optional<std::uint64_t>& free,
                                      const std::optional<std::uint64_t>& all) {
  if (!bytes || !free) return std::nullopt;
  return std::min(*bytes + *free, all.value_or(*bytes + *free));
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
  std::optional<std::uint64_t> peak = std::max(sample.high_bytes, used.late_peak_bytes());
  if (*peak <= sample.bytes) peak.reset();  // no peak was seen between the samples
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
      device.risk = {};  // its current use is unknown
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

ProcessRisks::OfProcess* ProcessRisks::find(const WatchedProcess& process, std::size_t device) {
  const auto found = std::find_if(tracked_.begin(), tracked_.end(), [&](const OfProcess& of) {
    return of.pid == process.pid && of.first_seen_ns == process.first_seen_ns && of.device == device;
  });
  return found == tracked_.end() ? nullptr : &*found;
}

void ProcessRisks::take(const WatchedProcess& process, std::size_t device, const WatchedUsage& used,
                        const ProcessSteps* steps) {
  if (used.empty()) return;
  OfProcess* of = find(process, device);
  if (of == nullptr) {
    if (tracked_.size() == kMaxMemories) return;
    of = &tracked_.emplace_back(OfProcess{process.pid, process.first_seen_ns, device, {Forecaster(options_)}});
  }
  of->memory.take(used, steps);
}

void ProcessRisks::add(const MachineState& state) {
  std::erase_if(tracked_, [&](const OfProcess& of) {
    return std::none_of(state.processes.begin(), state.processes.end(), [&](const WatchedProcess& process) {
      return process.pid == of.pid && process.first_seen_ns == of.first_seen_ns && !process.ended;
    });
  });
  // Devices first, because they run out first.
  for (const WatchedProcess& process : state.processes) {
    if (process.ended) continue;
    for (const ProcessOnDevice& on : process.devices) {
      take(process, on.device, on.used, steps_of(state, process.pid, &state.devices[on.device].key));
    }
  }
  for (const WatchedProcess& process : state.processes) {
    if (!process.ended) take(process, kRss, process.rss, steps_of(state, process.pid, nullptr));
  }
}

void ProcessRisks::assess(MachineState& state, bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && !pace_.due(time)) return;
  const auto before = processor_time();
  const auto assess = [&](const WatchedProcess& process, std::size_t device, std::optional<std::uint64_t> limit,
                          std::optional<ProcessRisk>& risk) {
    const OfProcess* const of = process.ended ? nullptr : find(process, device);
    if (of != nullptr && limit) risk = ProcessRisk{of->memory.forecaster.assess(limit), *limit};
  };
  for (WatchedProcess& process : state.processes) {
    for (ProcessOnDevice& on : process.devices) {
      const WatchedDevice& device = state.devices[on.device];
      if (!on.held) continue;
      assess(process, on.device, limit_of(on.bytes, device.free_bytes(), device.limit_bytes()), on.risk);
    }
    assess(process, kRss, limit_of(process.rss_bytes, state.host.free_bytes(), state.host.limit_bytes()), process.risk);
  }
  const auto cost = processor_time() - before;
  pace_.done(time, cost, cost);
}

void raise_risks_by_processes(MachineState& state) {
  const auto raise = [](RiskAssessment& memory, const std::optional<ProcessRisk>& process) {
    if (!process || process->risk.level <= memory.level) return;
    const RiskAssessment whole = memory;
    memory = process->risk;
    memory.used_bytes = whole.used_bytes;
    memory.used_percent = whole.used_percent;
  };
  for (const WatchedProcess& process : state.processes) {
    if (process.ended) continue;
    for (const ProcessOnDevice& on : process.devices) {
      WatchedDevice& device = state.devices.at(on.device);
      if (on.held && device.lost.empty() && device.assessed_at_ns) raise(device.risk, on.risk);
    }
    if (state.host.assessed_at_ns) raise(state.host.risk, process.risk);
  }
}

}  // namespace tidemark
