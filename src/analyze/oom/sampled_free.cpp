#include "analyze/oom/sampled_free.h"

#include <algorithm>

#include "analyze/common/arithmetic.h"
#include "analyze/ledger/replay.h"

namespace tidemark {
namespace {

// A sample by its place in the columns.
struct SampleAt {
  std::size_t device = 0;
  std::size_t index = 0;
};

// The last one with used bytes that is not after the failure, where it matches the events of its time.
std::optional<SampleAt> sample_before(const Store& store, const OutOfMemory& event) {
  const Device device = store.devices[event.device].device;
  if (event.device_free || device.type != DeviceType::cuda || !event.reserved) return std::nullopt;
  const auto found = std::find_if(store.samples.devices.begin(), store.samples.devices.end(), [&](const auto& series) {
    return series.device.cuda_index == static_cast<std::uint32_t>(device.index);
  });
  if (found == store.samples.devices.end() || !found->device.total_bytes) return std::nullopt;
  auto index = latest_until(found->time_ns, event.time_ns);
  while (index && !found->used_bytes[*index]) index = *index == 0 ? std::nullopt : std::optional(*index - 1);
  if (!index) return std::nullopt;
  const auto& calls = store.samples.slow_calls;
  const bool covered = std::any_of(calls.begin(), calls.end(),
                                   [&](const SlowDriverCall& call) { return call.covers(found->time_ns[*index]); });
  if (covered) return std::nullopt;
  return SampleAt{static_cast<std::size_t>(found - store.samples.devices.begin()), *index};
}

SampledFree free_at(const DeviceSeries& series, std::size_t index, const OutOfMemory& event, const HeldMemory& held) {
  const std::uint64_t reserved =
      event.device < held.devices.size() ? held.devices[event.device].reserved_bytes.value_or(0) : 0;
  const std::uint64_t outside = saturating_subtract(*series.used_bytes[index], reserved);
  const std::uint64_t driver = series.driver_reserved_bytes[index].value_or(0);
  const std::uint64_t usable = saturating_subtract(*series.device.total_bytes, driver);
  return {usable, saturating_subtract(usable, saturating_add(outside, *event.reserved)), series.time_ns[index]};
}

}  // namespace

std::vector<std::optional<SampledFree>> sampled_free(const Store& store, const std::vector<std::size_t>& failures) {
  std::vector<std::optional<SampledFree>> free(failures.size());
  std::vector<std::optional<SampleAt>> samples;
  std::vector<LedgerLookup> lookups;
  for (const std::size_t failure : failures) {
    const auto& sample = samples.emplace_back(sample_before(store, store.out_of_memory[failure]));
    if (sample) lookups.push_back({store.samples.devices[sample->device].time_ns[sample->index], sample->device});
  }
  if (lookups.empty()) return free;
  const CollectedSamples collected = collect_samples(store, {}, lookups);
  auto held = collected.lookups.begin();
  for (std::size_t n = 0; n < failures.size(); ++n) {
    if (!samples[n]) continue;
    const DeviceSeries& series = store.samples.devices[samples[n]->device];
    free[n] = free_at(series, samples[n]->index, store.out_of_memory[failures[n]], held->held);
    ++held;
  }
  return free;
}

}  // namespace tidemark
