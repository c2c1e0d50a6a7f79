#include "analyze/summary.h"

#include <algorithm>
#include <utility>

#include "analyze/common/devices.h"

namespace tidemark {
namespace {

constexpr std::size_t kMostOutOfMemory = 10;

SummaryDevice summarize_device(const Overview& overview, Symbols& symbols, std::size_t device, std::size_t top) {
  SummaryDevice result;
  result.totals = overview.devices[device];
  const auto unrecorded =
      static_cast<std::int64_t>(result.totals.peak_allocated_bytes - result.totals.peak_recorded_bytes);
  result.unrecorded_at_peak_bytes = unrecorded > 0 ? static_cast<std::uint64_t>(unrecorded) : 0;

  static_cast<CallSites&>(result) =
      group_by_call_site(usages_at_peak(overview, device), symbols, result.totals.peak_allocated_bytes, top);
  return result;
}

std::vector<CategoryBytes> categories_of(const Breakdown& breakdown, Device device) {
  for (const BreakdownDevice& each : breakdown.devices) {
    if (each.device == device) return each.categories;
  }
  return {};
}

std::optional<OomFailure> explain_latest(const SummaryOptions& options) {
  const Result<Store> store = options.load_blocks();
  if (!store) return std::nullopt;
  Symbols symbols(store->definitions);
  ExplainOptions explain;
  explain.device = options.device;
  explain.failures = 1;
  explain.top = 1;
  auto explanation = analyze_explain(*store, symbols, explain);
  if (!explanation || explanation->failures.empty()) return std::nullopt;
  return std::move(explanation->failures.front());
}

}  // namespace

Result<Summary> analyze_summary(const Overview& overview, Symbols& symbols, const SummaryOptions& options) {
  const auto selected = select_devices(overview, options.device);
  if (!selected) return selected.error();
  Summary summary;
  for (const std::size_t device : *selected) {
    summary.devices.push_back(summarize_device(overview, symbols, device, options.top));
    if (options.breakdown)
      summary.devices.back().categories = categories_of(*options.breakdown, overview.devices[device].device);
    if (device < options.advice.size()) summary.devices.back().advice = options.advice[device];
  }
  for (const OutOfMemory& event : overview.out_of_memory) {
    if (summary.out_of_memory.size() == kMostOutOfMemory) break;
    if (std::find(selected->begin(), selected->end(), event.device) == selected->end()) continue;
    summary.out_of_memory.push_back({event, overview.devices[event.device].device, name_stack(symbols, event.stack)});
  }
  if (!summary.out_of_memory.empty() && options.load_blocks) summary.failure = explain_latest(options);
  summary.ledgers = ledger_extremes(overview, options.samples, options.device);
  summary.host = options.host;
  summary.recording = describe_recording(overview, symbols);
  if (options.rank) summary.chosen = summary.recording.process.rank == static_cast<std::int64_t>(*options.rank);
  return summary;
}

}  // namespace tidemark
