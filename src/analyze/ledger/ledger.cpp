#include "analyze/ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/common/recording_info.h"
#include "analyze/ledger/lines.h"
#include "analyze/ledger/replay.h"
#include "base/arithmetic.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

namespace {

struct LedgerTarget {
  std::string name;                      ///< as LedgerDevice::device
  std::optional<std::size_t> sampled;    ///< by SampledDeviceId
  std::optional<LedgerIndexes> indexes;  ///< nullopt if the program's index of the device is unknown
  std::optional<std::size_t> framework;  ///< index into Overview::devices, if the framework's allocator used it
  bool used = false;                     ///< whether the recorded process used it, by its events
};

// cuda_index of a recording may be anything; the program's devices have few numbers.
std::optional<Device> program_device(const SampledDevice& sampled) {
  constexpr std::uint32_t kMax = 127;
  if (!sampled.cuda_index || *sampled.cuda_index > kMax) return std::nullopt;
  return Device{DeviceType::cuda, static_cast<std::int8_t>(*sampled.cuda_index)};
}

std::string name_of(const SampledDevice& sampled) {
  if (const auto device = program_device(sampled)) return to_string(*device);
  if (sampled.instance_of) return fmt::format("{}:{}.{}", sampled.vendor, *sampled.instance_of, sampled.index);
  return fmt::format("{}:{}", sampled.vendor, sampled.index);
}

// Devices with an index of the program first, then those named by the vendor's tool.
bool listed_earlier(const LedgerTarget& left, const LedgerTarget& right) {
  const auto left_device = parse_device(left.name);
  const auto right_device = parse_device(right.name);
  return left_device && right_device ? listed_before(*left_device, *right_device) : left_device && !right_device;
}

std::optional<std::size_t> find_device(const Overview& overview, Device device) {
  const auto found = std::find_if(overview.devices.begin(), overview.devices.end(),
                                  [&](const DeviceSummary& summary) { return summary.device == device; });
  if (found == overview.devices.end()) return std::nullopt;
  return static_cast<std::size_t>(found - overview.devices.begin());
}

// Sampled devices and devices that only events mention, in the order of listed_before().
std::vector<LedgerTarget> ledger_targets(const Overview& overview, const std::vector<SampledDevice>& sampled) {
  std::vector<LedgerTarget> targets;
  targets.reserve(sampled.size() + overview.devices.size());
  for (std::size_t index = 0; index < sampled.size(); ++index) {
    LedgerTarget& target = targets.emplace_back();
    target.name = name_of(sampled[index]);
    target.sampled = index;
    const auto device = program_device(sampled[index]);
    if (!device) continue;
    target.indexes.emplace(overview, *device);
    target.framework = find_device(overview, *device);
    target.used = target.indexes->used();
  }
  for (std::size_t index = 0; index < overview.devices.size(); ++index) {
    const Device device = overview.devices[index].device;
    if (device.type == DeviceType::cpu || is_driver_memory(device)) continue;
    const std::string name = to_string(device);
    const auto same = [&](const LedgerTarget& target) { return target.name == name; };
    if (std::any_of(targets.begin(), targets.end(), same)) continue;
    LedgerTarget& target = targets.emplace_back();
    target.name = name;
    target.indexes.emplace(overview, device);
    target.framework = index;
    target.used = true;
  }
  std::stable_sort(targets.begin(), targets.end(), listed_earlier);
  return targets;
}

// All of `targets`, or only the requested one. Fails, listing the devices, if that is not among them.
Result<std::vector<LedgerTarget>> select_targets(const Overview& overview, std::vector<LedgerTarget> targets,
                                                 const std::optional<std::string>& device) {
  if (!device) return targets;
  std::vector<LedgerTarget> selected;
  std::string known;
  for (LedgerTarget& target : targets) {
    known += (known.empty() ? "" : ", ") + target.name;
    if (*device == target.name) selected.push_back(std::move(target));
  }
  if (selected.empty()) {
    return Error{fmt::format("{}: no GPU '{}' (available: {})", overview.path, *device,
                             known.empty() ? "none; no GPU was used or sampled" : known)};
  }
  return selected;
}

constexpr std::size_t kMaxLibraries = 5;  // as many as pictures have colours for

LedgerPoint point_of(const LedgerBreakdown& ledger, const std::vector<std::string>& libraries) {
  LedgerPoint point;
  point.time_ns = ledger.time_ns.value_or(0);
  point.used_bytes = ledger.used_bytes.value_or(0);
  point.allocated_bytes = ledger.allocated_bytes;
  point.cached_bytes = ledger.cached_bytes;
  point.library_bytes.resize(libraries.size());
  if (ledger.processes_sampled_at_ns) point.process_bytes = 0;
  for (const LedgerLine& line : ledger.lines) {
    const std::uint64_t bytes = line.bytes.value_or(0);
    if (line.part == LedgerPart::context) point.context_bytes = line.bytes;
    if (line.part == LedgerPart::process) point.process_bytes = saturating_add(*point.process_bytes, bytes);
    if (line.part != LedgerPart::library) continue;
    const auto found = std::find(libraries.begin(), libraries.end(), line.name);
    std::uint64_t& sum = found == libraries.end()
                             ? point.other_library_bytes
                             : point.library_bytes[static_cast<std::size_t>(found - libraries.begin())];
    sum = saturating_add(sum, bytes);
  }
  return point;
}

// The libraries that held most at some time, most first; at most five.
std::vector<std::string> largest_libraries(const std::vector<LedgerBreakdown>& ledgers) {
  std::map<std::string, std::uint64_t> highest;
  for (const LedgerBreakdown& ledger : ledgers) {
    for (const LedgerLine& line : ledger.lines) {
      if (line.part != LedgerPart::library) continue;
      std::uint64_t& bytes = highest[line.name];
      bytes = std::max(bytes, line.bytes.value_or(0));
    }
  }
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  sorted.reserve(highest.size());
  for (const auto& [name, bytes] : highest) sorted.emplace_back(bytes, name);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  if (sorted.size() > kMaxLibraries) sorted.resize(kMaxLibraries);
  std::vector<std::string> names;
  names.reserve(sorted.size());
  for (auto& [bytes, name] : sorted) names.push_back(std::move(name));
  return names;
}

// One point for each ledger with a time and used bytes. `libraries` are kept separate, others added up.
std::vector<LedgerPoint> points_of(const std::vector<LedgerBreakdown>& ledgers,
                                   const std::vector<std::string>& libraries) {
  std::vector<LedgerPoint> points;
  points.reserve(ledgers.size());
  for (const LedgerBreakdown& ledger : ledgers) points.push_back(point_of(ledger, libraries));
  return points;
}

// Makes ledgers of one device from its samples and the recorded allocations.
class LedgerBuilder {
 public:
  LedgerBuilder(const LedgerTarget& target, MemoryOwners& owners) : target_(target), owners_(owners) {}

  // For a device that has a peak.
  [[nodiscard]] LedgerBreakdown build_peak(const DeviceSamples& samples) const {
    LedgerBreakdown ledger = build(*samples.peak);
    ledger.transient_peak_bytes = samples.transient_peak_bytes;
    if (samples.transient_peak_bytes) ledger.caveats.push_back(LedgerCaveat::transient_peak);
    return ledger;
  }
  [[nodiscard]] LedgerBreakdown build(const LedgerInput& input) const {
    const OwnMemory own = own_memory(input.held);
    const std::optional<ProcessLines> latest = input.lists ? read(input.lists->latest.get()) : std::nullopt;
    const std::optional<ProcessLines> next = input.lists ? read(input.lists->next.get()) : std::nullopt;
    const ProcessLines* processes = choose(input.time_ns, own, latest, next);
    LedgerBreakdown ledger =
        make_ledger(input.time_ns, input.used_bytes, target_.indexes ? &own : nullptr, processes, owners_);
    if (input.during_driver_call) ledger.caveats.push_back(LedgerCaveat::during_driver_call);
    return ledger;
  }
  // At the end, null if there is no sample. A sample after the last event may be of a process that is exiting: it
  // counts only if the process's memory has changed since the one before, and no other memory of the device has.
  [[nodiscard]] const LedgerInput* at_end(const DeviceSamples& samples) const {
    if (!samples.last) return nullptr;
    if (!samples.after) return &*samples.last;
    const std::uint64_t before = own_memory(samples.last->held).known_bytes();
    const std::uint64_t now = own_memory(samples.after->held).known_bytes();
    const bool alone = *samples.last->used_bytes - before == *samples.after->used_bytes - now;
    return now != before && alone ? &*samples.after : &*samples.last;
  }
  // If there is no time to analyze.
  [[nodiscard]] LedgerBreakdown build_empty() const {
    const OwnMemory own;
    LedgerBreakdown ledger =
        make_ledger(std::nullopt, std::nullopt, target_.indexes ? &own : nullptr, nullptr, owners_);
    ledger.caveats.insert(ledger.caveats.begin(), LedgerCaveat::no_events);
    return ledger;
  }

 private:
  [[nodiscard]] OwnMemory own_memory(const HeldMemory& held) const {
    return target_.indexes ? target_.indexes->own(held, owners_) : OwnMemory();
  }
  [[nodiscard]] std::optional<ProcessLines> read(const ProcessList* list) const {
    if (list == nullptr) return std::nullopt;
    const OwnMemory own = own_memory(list->held);
    return read_processes(list->sample, target_.indexes ? &own : nullptr);
  }
  // The process list for a time: the nearest list taken at the same stage of the process. Only a finished context can
  // allocate memory, so once the process has done so, a list from before shows too little, however near it is; until
  // then, a list from after shows too much. Lists from after the process's end are excluded as well. The unexplained
  // bytes do not affect the choice, which would otherwise hide memory without an owner.
  [[nodiscard]] static const ProcessLines* choose(std::uint64_t time_ns, const OwnMemory& own,
                                                  const std::optional<ProcessLines>& latest,
                                                  const std::optional<ProcessLines>& next) {
    if (!latest || !next) return latest ? &*latest : next ? &*next : nullptr;
    if (latest->stage != next->stage) return own.began && next->stage > latest->stage ? &*next : &*latest;
    return next->time_ns - time_ns < time_ns - latest->time_ns ? &*next : &*latest;
  }

  const LedgerTarget& target_;
  MemoryOwners& owners_;
};

// The requested time, unless the moment is the peak or the end.
std::optional<std::uint64_t> requested_time(const Store& store, const Moment& at) {
  if (at.kind == Moment::Kind::time) return at.time_ns;
  if (at.kind == Moment::Kind::share) {
    return static_cast<std::uint64_t>(at.share * static_cast<double>(store.end_ns));
  }
  return std::nullopt;
}

// The time for a device without a sample at the requested moment.
std::optional<std::uint64_t> time_without_sample(const Store& store, const LedgerTarget& target, const Moment& at) {
  if (at.kind == Moment::Kind::end) return store.end_ns;
  if (at.kind != Moment::Kind::peak) return requested_time(store, at);
  if (!target.framework) return std::nullopt;
  const DeviceSummary& summary = store.devices[*target.framework];
  return summary.peak_reserved_at_ns ? summary.peak_reserved_at_ns : summary.peak_allocated_at_ns;
}

LedgerQuery make_query(const Store& store, const LedgerOptions& options) {
  LedgerQuery query;
  query.at_ns = requested_time(store, options.at);
  if (options.points == 0) return query;
  for (const DeviceSeries& series : store.samples.devices) {
    query.stretch_ns.push_back(series.time_ns.empty() ? 0 : series.time_ns.back() / options.points + 1);
  }
  return query;
}

// One device while its ledgers are made.
struct DevicePlan {
  LedgerTarget target;
  const DeviceSamples* samples = nullptr;       // null: not sampled
  const LedgerInput* without_sample = nullptr;  // null: there is no time to look at
};

// The reason why the device's used bytes are unknown.
LedgerCaveat caveat_of_unknown(const Store& store, const DevicePlan& plan) {
  if (store.samples.devices.empty()) return LedgerCaveat::no_samples;
  if (plan.samples == nullptr) return LedgerCaveat::device_not_sampled;
  return plan.samples->peak ? LedgerCaveat::no_sample_yet : LedgerCaveat::used_unknown;
}

LedgerBreakdown build_requested(const Store& store, const DevicePlan& plan, const LedgerBuilder& builder,
                                bool at_peak) {
  if (at_peak && plan.samples != nullptr && plan.samples->peak) return builder.build_peak(*plan.samples);
  const LedgerInput* const chosen = plan.samples == nullptr ? nullptr : builder.at_end(*plan.samples);
  if (!at_peak && chosen != nullptr) return builder.build(*chosen);
  LedgerBreakdown ledger = plan.without_sample == nullptr ? builder.build_empty() : builder.build(*plan.without_sample);
  ledger.caveats.insert(ledger.caveats.begin(), caveat_of_unknown(store, plan));
  return ledger;
}

LedgerDevice build_device(const Store& store, const DevicePlan& plan, bool at_peak, MemoryOwners& owners) {
  const LedgerBuilder builder(plan.target, owners);
  LedgerDevice device;
  device.device = plan.target.name;
  device.breakdown = build_requested(store, plan, builder, at_peak);
  if (plan.samples == nullptr) return device;
  device.model = plan.samples->device.name;
  device.total_bytes = plan.samples->device.total_bytes;
  std::vector<LedgerBreakdown> ledgers;
  ledgers.reserve(plan.samples->over_time.size());
  for (const LedgerInput& input : plan.samples->over_time) ledgers.push_back(builder.build(input));
  device.libraries = largest_libraries(ledgers);
  device.points = points_of(ledgers, device.libraries);
  return device;
}

std::optional<HostLedger> build_host(const Store& store, const LedgerOptions& options) {
  const auto& samples = store.samples.host_parts;
  HostQuery query;
  query.at_ns = requested_time(store, options.at);
  if (options.points != 0 && !samples.empty()) query.stretch_ns = samples.back().time_ns / options.points + 1;
  HostLedgers host = collect_host(store, query);
  if (host.empty()) return std::nullopt;
  const bool at_peak = options.at.kind == Moment::Kind::peak;
  auto& chosen = at_peak ? host.peak : options.at.kind == Moment::Kind::end ? host.last : host.at;
  return HostLedger{std::move(chosen), std::move(host.points), std::move(host.kills)};
}

}  // namespace

Result<Ledger> analyze_ledger(const Store& store, const Symbols& symbols, const LedgerOptions& options) {
  Ledger ledger;
  ledger.recording = describe_recording(store, symbols);
  if (!options.device || *options.device == kHostDevice) ledger.host = build_host(store, options);
  if (ledger.host && options.device) return ledger;
  std::vector<SampledDevice> sampled;
  sampled.reserve(store.samples.devices.size());
  for (const DeviceSeries& series : store.samples.devices) sampled.push_back(series.device);
  auto targets = select_targets(store, ledger_targets(store, sampled), options.device);
  if (!targets) return targets.error();

  std::vector<LedgerLookup> lookups;
  std::vector<std::optional<std::size_t>> lookup_of;  // by target
  for (const LedgerTarget& target : *targets) {
    const auto time_ns = time_without_sample(store, target, options.at);
    lookup_of.push_back(time_ns ? std::optional(lookups.size()) : std::nullopt);
    if (time_ns) lookups.push_back({*time_ns, target.sampled});
  }
  const CollectedSamples collected = collect_samples(store, make_query(store, options), lookups);

  MemoryOwners owners(store.definitions);
  for (std::size_t n = 0; n < targets->size(); ++n) {
    DevicePlan plan;
    plan.target = std::move((*targets)[n]);
    if (plan.target.sampled) plan.samples = &collected.devices[*plan.target.sampled];
    if (lookup_of[n]) plan.without_sample = &collected.lookups[*lookup_of[n]];
    const bool listed = plan.samples != nullptr && plan.samples->lists_process;
    if (!options.device && !plan.target.used && !listed) continue;
    ledger.devices.push_back(build_device(store, plan, options.at.kind == Moment::Kind::peak, owners));
  }
  return ledger;
}

std::vector<LedgerExtremes> ledger_extremes(const Overview& overview, const std::vector<DeviceSamples>& samples,
                                            const std::optional<std::string>& device) {
  std::vector<SampledDevice> sampled;
  sampled.reserve(samples.size());
  for (const DeviceSamples& each : samples) sampled.push_back(each.device);
  std::vector<LedgerExtremes> extremes;
  MemoryOwners owners(overview.definitions);
  for (const LedgerTarget& target : ledger_targets(overview, sampled)) {
    if (!target.sampled) continue;
    const DeviceSamples& here = samples[*target.sampled];
    if (!here.peak || !(device ? *device == target.name : target.used || here.lists_process)) continue;
    const LedgerBuilder builder(target, owners);
    LedgerExtremes& ends = extremes.emplace_back();
    ends.device = target.name;
    ends.model = here.device.name;
    ends.total_bytes = here.device.total_bytes;
    ends.peak = builder.build_peak(here);
    if (const LedgerInput* const end = builder.at_end(here)) ends.end = builder.build(*end);
  }
  return extremes;
}

}  // namespace tidemark
