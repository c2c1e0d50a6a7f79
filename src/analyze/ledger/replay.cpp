#include "analyze/ledger/replay.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "analyze/common/totals.h"

namespace tidemark {
namespace {

// The state that Tally tracks while a file is read, from the columns of a store.
class Replay final : public EventsSoFar {
 public:
  explicit Replay(const Store& store) : store_(store) {
    driver_.reserve(store.devices.size());
    for (const DeviceSummary& device : store.devices) driver_.push_back(is_driver_memory(device.device));
  }

  void take(const DeviceTotals& totals) {
    devices_.resize(std::max(devices_.size(), totals.device + 1));
    devices_[totals.device] = {totals.allocated_bytes, totals.reserved_bytes};
    for (; taken_ < totals.change_count; ++taken_) take(store_.live_changes[taken_]);
  }
  [[nodiscard]] HeldMemory held() const override {
    HeldMemory held{devices_, {}};
    std::copy_if(usages_.begin(), usages_.end(), std::back_inserter(held.driver_stacks),
                 [](const StackUsage& usage) { return usage.blocks != 0; });
    return held;
  }
  [[nodiscard]] std::optional<std::uint64_t> last_event_ns() const override { return store_.last_event_ns; }

 private:
  void take(const LiveChange& live_change) {
    const std::uint8_t device = store_.blocks.device[live_change.block.value];
    if (!driver_[device]) return;
    const StackId stack = store_.blocks.stack[live_change.block.value];
    const std::uint64_t size = store_.blocks.size[live_change.block.value];
    const auto [known, is_new] = usage_of_.try_emplace({device, stack.value}, usages_.size());
    if (is_new) usages_.push_back({device, stack, 0, 0});
    StackUsage& usage = usages_[known->second];
    usage.bytes = live_change.birth ? usage.bytes + size : usage.bytes - size;
    usage.blocks = live_change.birth ? usage.blocks + 1 : usage.blocks - 1;
  }

  const Store& store_;
  std::uint64_t taken_ = 0;   // of Store::live_changes, so many were taken
  std::vector<bool> driver_;  // by device
  std::vector<HeldMemory::OnDevice> devices_;
  std::map<std::pair<std::uint8_t, std::uint32_t>, std::size_t> usage_of_;
  std::vector<StackUsage> usages_;
};

// An entry of the samples' columns, or a lookup; entries of one time are in this order.
struct Entry {
  enum class Kind : std::uint8_t { process_list, sample, slow_call, lookup };

  std::uint64_t time_ns = 0;
  Kind kind = Kind::sample;
  std::size_t device = 0;
  std::size_t index = 0;  // in its column

  bool operator<(const Entry& other) const {
    return std::tie(time_ns, kind, device, index) < std::tie(other.time_ns, other.kind, other.device, other.index);
  }
};

std::vector<Entry> in_order_of_time(const Samples& samples, const std::vector<LedgerLookup>& lookups) {
  std::vector<Entry> entries;
  for (std::size_t device = 0; device < samples.devices.size(); ++device) {
    const DeviceSeries& series = samples.devices[device];
    for (std::size_t index = 0; index < series.time_ns.size(); ++index) {
      if (series.used_bytes[index]) entries.push_back({series.time_ns[index], Entry::Kind::sample, device, index});
    }
    for (std::size_t index = 0; index < series.processes.size(); ++index) {
      entries.push_back({series.processes[index].time_ns, Entry::Kind::process_list, device, index});
    }
  }
  for (std::size_t index = 0; index < samples.slow_calls.size(); ++index) {
    entries.push_back({samples.slow_calls[index].time_ns, Entry::Kind::slow_call, 0, index});
  }
  for (std::size_t index = 0; index < lookups.size(); ++index) {
    entries.push_back({lookups[index].time_ns, Entry::Kind::lookup, 0, index});
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

SampleRecord record_of(const Samples& samples, const Entry& entry) {
  const DeviceSeries* const series = entry.device < samples.devices.size() ? &samples.devices[entry.device] : nullptr;
  if (entry.kind == Entry::Kind::slow_call) return samples.slow_calls[entry.index];
  if (entry.kind == Entry::Kind::process_list) return series->processes[entry.index];
  DeviceSample sample;
  sample.time_ns = entry.time_ns;
  sample.device = SampledDeviceId{static_cast<std::uint32_t>(entry.device)};
  sample.used_bytes = series->used_bytes[entry.index];
  return sample;
}

}  // namespace

CollectedSamples collect_samples(const Store& store, const LedgerQuery& query,
                                 const std::vector<LedgerLookup>& lookups) {
  const std::vector<Entry> entries = in_order_of_time(store.samples, lookups);
  CollectedSamples collected;
  collected.lookups.resize(lookups.size());
  LedgerCollector collector(query);
  Replay events(store);
  for (const DeviceSeries& series : store.samples.devices) collector.add(series.device, events);
  auto next = entries.begin();
  const auto take_next = [&] {
    const Entry& entry = *next++;
    if (entry.kind != Entry::Kind::lookup) {
      collector.add(record_of(store.samples, entry), events);
    } else {
      collected.lookups[entry.index] = collector.without_sample(entry.time_ns, lookups[entry.index].device, events);
    }
  };
  if (!entries.empty()) {
    walk_totals(store, [&](const DeviceTotals& totals) {
      while (next != entries.end() && next->time_ns < totals.time_ns) take_next();
      events.take(totals);
    });
  }
  while (next != entries.end()) take_next();
  collected.devices = std::move(collector).finish(store.last_event_ns);
  return collected;
}

HostLedgers collect_host(const Store& store, const HostQuery& query) {
  HostLedgerCollector collector(query);
  Replay events(store);
  auto parts = store.samples.host_parts.begin();
  auto killed = store.samples.killed.begin();
  const auto take_before = [&](std::uint64_t time_ns) {
    for (;;) {
      const bool has_parts = parts != store.samples.host_parts.end() && parts->time_ns < time_ns;
      const bool has_killed = killed != store.samples.killed.end() && killed->time_ns < time_ns;
      if (!has_parts && !has_killed) return;
      if (has_parts && (!has_killed || parts->time_ns <= killed->time_ns)) {
        collector.add(*parts++, &events);
      } else {
        collector.add(*killed++, &events);
      }
    }
  };
  const bool has_driver = std::any_of(store.devices.begin(), store.devices.end(),
                                      [](const DeviceSummary& device) { return is_driver_memory(device.device); });
  if (has_driver) {
    walk_totals(store, [&](const DeviceTotals& totals) {
      take_before(totals.time_ns);
      events.take(totals);
    });
  }
  take_before(~std::uint64_t{0});
  return std::move(collector).finish(store);
}

}  // namespace tidemark
