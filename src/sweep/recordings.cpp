#include "sweep/recordings.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "analyze/attribution/attribution.h"
#include "analyze/ledger/samples.h"
#include "analyze/usage/breakdown.h"
#include "analyze/usage/summary.h"
#include "import/open.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

void raise_to(std::optional<std::uint64_t>& most, const std::optional<std::uint64_t>& value) {
  if (value) most = std::max(most.value_or(0), *value);
}

Result<void> add_recording(TrialResult& result, const std::string& path) {
  LedgerCollector collector;
  const auto overview = open_overview(
      path, {}, [&](const SampleRecord& record, const EventsSoFar& events) { collector.add(record, events); });
  if (!overview) return overview.error();
  SummaryOptions options;
  options.samples = std::move(collector).finish(overview->last_event_ns);
  Symbols symbols(overview->definitions);
  const auto summary = analyze_summary(*overview, symbols, options);
  if (!summary) return summary.error();
  for (const SummaryDevice& device : summary->devices) {
    if (device.totals.device.type != DeviceType::cuda || !device.totals.peak_allocated_at_ns) continue;
    raise_to(result.peak_allocated_bytes, device.totals.peak_allocated_bytes);
    raise_to(result.peak_reserved_bytes, device.totals.peak_reserved_bytes);
    result.out_of_memory = result.out_of_memory || device.totals.out_of_memory_count != 0;
  }
  for (const LedgerExtremes& ledger : summary->ledgers) {
    raise_to(result.device_used_bytes, ledger.peak.used_bytes);
    raise_to(result.memory_bytes, ledger.total_bytes);
  }
  return {};
}

// What the device with the highest peak holds then, where `most` is lower.
void add_categories(std::vector<HeldByCategory>& categories, std::uint64_t& most, const std::string& path) {
  const auto store = open_store(path);
  if (!store) return;
  const Symbols symbols(store->definitions);
  const auto breakdown = analyze_breakdown(*store, symbols, attribute_blocks(*store), {});
  if (!breakdown) return;  // nothing is known of it
  for (const BreakdownDevice& device : breakdown->devices) {
    if (device.device.type != DeviceType::cuda || device.allocated_bytes <= most) continue;
    most = device.allocated_bytes;
    categories.clear();
    for (const CategoryBytes& part : device.categories) categories.push_back({part.category, part.bytes});
  }
}

}  // namespace

std::vector<HeldByCategory> categories_at_peak(const std::string& folder) {
  std::vector<HeldByCategory> categories;
  std::uint64_t most = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tide") add_categories(categories, most, entry.path().string());
  }
  return categories;
}

TrialResult read_recordings(const std::string& folder, const ProcessEnd& end) {
  TrialResult result;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".tide") continue;
    if (const auto added = add_recording(result, entry.path().string()); !added) {
      result.failure = added.error().message;
      return result;
    }
  }
  if (!result.peak_allocated_bytes && end.exit_code == 0) result.failure = "the program allocated no memory on a GPU";
  if (result.out_of_memory) result.fits = false;
  if (result.peak_allocated_bytes && !result.out_of_memory && end.exit_code == 0) result.fits = true;
  return result;
}

}  // namespace tidemark
