#include "analyze/plan/simulation.h"

#include <algorithm>
#include <tuple>

namespace tidemark {
namespace {

std::int64_t difference(std::uint64_t left, std::uint64_t right) {
  return static_cast<std::int64_t>(left) - static_cast<std::int64_t>(right);
}

}  // namespace

std::uint64_t SimulatedSettings::peak_reserved() const {
  std::uint64_t sum = 0;
  for (const AllocatorOutcome& device : devices) sum += device.peak_reserved;
  return sum;
}

std::uint64_t SimulatedSettings::retries() const {
  std::uint64_t sum = 0;
  for (const AllocatorOutcome& device : devices) sum += device.retries.value_or(0);
  return sum;
}

std::string Simulation::replayer() const {
  return torch_version.empty() ? "Tidemark's model of the allocator" : "PyTorch " + torch_version;
}

std::int64_t Simulation::reserved_error() const {
  std::uint64_t recorded = 0;
  for (const SimulatedDevice& device : devices) recorded += device.recorded.peak_reserved;
  return difference(recorded, check.peak_reserved());
}

std::optional<std::int64_t> Simulation::saving(const SimulatedSettings& run) const {
  if (run.out_of_memory_ns || check.out_of_memory_ns) return std::nullopt;
  return difference(check.peak_reserved(), run.peak_reserved());
}

std::optional<std::int64_t> Simulation::saving(const SimulatedSettings& run, std::size_t device) const {
  if (run.out_of_memory_ns || check.out_of_memory_ns) return std::nullopt;
  return difference(check.devices[device].peak_reserved, run.devices[device].peak_reserved);
}

void rank_settings(std::vector<SimulatedSettings>& runs) {
  const auto rank = [](const SimulatedSettings& run) {
    return std::tuple(run.out_of_memory_ns.has_value(), ~run.passed_failures, run.peak_reserved(), run.retries());
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const SimulatedSettings& left, const SimulatedSettings& right) {
    return rank(left) < rank(right);
  });
}

AllocatorOutcome recorded_outcome(const DeviceSummary& device) {
  AllocatorOutcome outcome;
  outcome.peak_allocated = device.peak_allocated_bytes;
  outcome.peak_reserved = device.peak_reserved_bytes.value_or(0);
  outcome.peak_active = device.peak_active_bytes;
  outcome.at_end.allocated = device.live_allocated_bytes;
  outcome.at_end.reserved = device.end_reserved_bytes;
  return outcome;
}

}  // namespace tidemark
