#include "monitor/process_risks.h"

#include <algorithm>
#include <optional>

namespace tidemark {
namespace {

const ProcessSteps* steps_of(const MachineState& state, std::int64_t pid, const std::string* device) {
  for (const ProcessSteps& steps : state.steps) {
    if (steps.pid == pid && (device == nullptr || steps.device == *device)) return &steps;
  }
  return nullptr;
}

// What it has and what nobody has; of all no more than there is, as both are not read at the same time.
std::optional<std::uint64_t> limit_of(const std::optional<std::uint64_t>& bytes,
                                      const std::optional<std::uint64_t>& free,
                                      const std::optional<std::uint64_t>& all) {
  if (!bytes || !free) return std::nullopt;
  return std::min(*bytes + *free, all.value_or(*bytes + *free));
}

}  // namespace

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
  // Devices first: those are what runs out.
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

}  // namespace tidemark
