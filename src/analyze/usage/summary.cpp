#include "analyze/usage/summary.h"

#include <algorithm>
#include <utility>

#include "analyze/common/recording_info.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxOutOfMemory = 10;

SummaryDevice summarize_device(const Overview& overview, Symbols& symbols, std::size_t device,
                               const SummaryOptions& options) {
  SummaryDevice result;
  result.totals = overview.devices[device];
  const auto unrecorded =
      static_cast<std::int64_t>(result.totals.peak_allocated_bytes - result.totals.peak_recorded_bytes);
  result.unrecorded_at_peak_bytes = unrecorded > 0 ? static_cast<std::uint64_t>(unrecorded) : 0;
  const std::uint64_t whole = result.totals.peak_allocated_bytes;
  CallSites& sites = result;
  if (!options.blocks) {
    sites = group_by_call_site(usages_at_peak(overview, device), symbols, whole, options.top);
    return result;
  }
  Symbols names(options.blocks->definitions);
  sites = group_by_call_site(usages_at_peak(*options.blocks, device, options.holders), names, whole, options.top,
                             options.holders);
  if (!options.holders.all()) result.unrecorded_at_peak_bytes = 0;
  return result;
}

std::optional<OomFailure> explain_latest(const SummaryOptions& options) {
  const auto loaded = options.load_blocks();
  if (!loaded) return std::nullopt;
  const AttributedStore& store = **loaded;
  Symbols symbols(store.definitions);
  ExplainOptions explain;
  explain.device = options.device;
  explain.failures = 1;
  explain.top = 1;
  std::optional<Attribution> from_stacks;  // of a snapshot
  if (store.attribution == nullptr) from_stacks = attribute_blocks(store);
  explain.attribution = store.attribution == nullptr ? &*from_stacks : store.attribution.get();
  auto explanation = analyze_explain(store, symbols, explain);
  if (!explanation || explanation->failures.empty()) return std::nullopt;
  return std::move(explanation->failures.front());
}

}  // namespace

std::optional<SampledBytes> pinned_memory(const Overview& overview) {
  for (const DeviceSummary& device : overview.devices) {
    if (device.device.type != DeviceType::cuda_host) continue;
    return SampledBytes{device.peak_allocated_bytes, device.peak_allocated_at_ns.value_or(0),
                        device.live_allocated_bytes, overview.end_ns};
  }
  return std::nullopt;
}

Result<Summary> analyze_summary(const Overview& overview, Symbols& symbols, const SummaryOptions& options) {
  const auto selected = select_devices(overview, options.device);
  if (!selected) return selected.error();
  Summary summary;
  for (const std::size_t device : *selected) {
    summary.devices.push_back(summarize_device(overview, symbols, device, options));
    SummaryDevice& added = summary.devices.back();
    if (const Breakdown* known = options.owners.breakdown.get()) {
      added.categories = categories_of(*known, added.totals.device);
    }
    if (device < options.owners.model_bytes.size()) added.peak_model_bytes = options.owners.model_bytes[device];
    if (options.holders.all() && device < options.owners.advice.size()) added.advice = options.owners.advice[device];
    // For selected blocks too, shares are relative to the device's peak.
    for (CategoryBytes& category : added.categories) {
      if (options.holders.all()) break;
      category.share = share_of(category.bytes, added.totals.peak_allocated_bytes).value_or(0);
    }
  }
  for (const OutOfMemory& event : overview.out_of_memory) {
    if (summary.out_of_memory.size() == kMaxOutOfMemory) break;
    if (std::find(selected->begin(), selected->end(), event.device) == selected->end()) continue;
    summary.out_of_memory.push_back({event, overview.devices[event.device].device, name_stack(symbols, event.stack)});
  }
  if (!summary.out_of_memory.empty() && options.load_blocks) summary.failure = explain_latest(options);
  summary.ledgers = ledger_extremes(overview, options.samples, options.device);
  summary.host = options.host;
  summary.pinned = pinned_memory(overview);
  summary.host_ledgers = options.host_ledgers;
  if (options.holders.all()) summary.leaks = options.owners.leaks;
  summary.recording = describe_recording(overview, symbols);
  if (options.rank) summary.chosen = summary.recording.process.rank == static_cast<std::int64_t>(*options.rank);
  return summary;
}

}  // namespace tidemark
