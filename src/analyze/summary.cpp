#include "analyze/summary.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyze/moment.h"

namespace tidemark {
namespace {

constexpr std::size_t kMostOutOfMemory = 10;

// Stacks are one place when these agree: the frame shown and the leaf.
using PlaceKey = std::tuple<std::string, std::string, std::uint32_t, std::string>;

PlaceKey key_of(const NamedStack& stack) {
  if (stack.frames.empty()) return {};
  const FrameName& place = stack.frames[stack.place];
  return {place.function, place.file, place.line, stack.leaf ? stack.frames[*stack.leaf].function : std::string()};
}

std::vector<StackUsage> largest_first(const Overview& overview, std::size_t device) {
  std::vector<StackUsage> usages;
  for (const StackUsage& usage : overview.stacks_at_peak) {
    if (usage.device == device) usages.push_back(usage);
  }
  std::sort(usages.begin(), usages.end(), [](const StackUsage& left, const StackUsage& right) {
    return left.bytes != right.bytes ? left.bytes > right.bytes : left.stack < right.stack;
  });
  return usages;
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

SummaryDevice summarize_device(const Overview& overview, Symbols& symbols, std::size_t device, std::size_t top) {
  SummaryDevice result;
  result.totals = overview.devices[device];
  const auto unrecorded =
      static_cast<std::int64_t>(result.totals.peak_allocated_bytes - result.totals.peak_recorded_bytes);
  result.unrecorded_at_peak_bytes = unrecorded > 0 ? static_cast<std::uint64_t>(unrecorded) : 0;

  std::map<PlaceKey, std::size_t> index_of;
  for (const StackUsage& usage : largest_first(overview, device)) {
    NamedStack stack = name_stack(symbols, usage.stack);
    const auto [entry, is_new] = index_of.try_emplace(key_of(stack), result.places.size());
    if (is_new) result.places.emplace_back().stack = std::move(stack);
    SummaryPlace& place = result.places[entry->second];
    place.bytes += usage.bytes;
    place.blocks += usage.blocks;
    ++place.stacks;
  }
  std::stable_sort(result.places.begin(), result.places.end(),
                   [](const SummaryPlace& left, const SummaryPlace& right) { return left.bytes > right.bytes; });
  for (std::size_t index = top; index < result.places.size(); ++index) {
    ++result.other_places;
    result.other_bytes += result.places[index].bytes;
  }
  if (result.places.size() > top) result.places.resize(top);
  for (SummaryPlace& place : result.places) place.share = share_of(place.bytes, result.totals.peak_allocated_bytes);
  return result;
}

}  // namespace

Result<Summary> analyze_summary(const Overview& overview, Symbols& symbols, const SummaryOptions& options) {
  const auto selected = select_devices(overview, options.device);
  if (!selected) return selected.error();
  Summary summary;
  for (const std::size_t device : *selected) {
    summary.devices.push_back(summarize_device(overview, symbols, device, options.top));
  }
  for (const OutOfMemory& event : overview.out_of_memory) {
    if (summary.out_of_memory.size() == kMostOutOfMemory) break;
    if (std::find(selected->begin(), selected->end(), event.device) == selected->end()) continue;
    summary.out_of_memory.push_back({event, overview.devices[event.device].device, name_stack(symbols, event.stack)});
  }
  summary.recording = describe_recording(overview, symbols);
  return summary;
}

}  // namespace tidemark
