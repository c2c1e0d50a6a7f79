#include "report/html/page_contents.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "analyze/common/holders.h"
#include "analyze/ledger/replay.h"
#include "analyze/timeline/timeline.h"
#include "report/html/page_budget.h"

namespace tidemark::html {
namespace {

constexpr std::size_t kListed = 10;            // of call sites, leaks, segments, ...
constexpr std::size_t kMapStacks = 200;        // that the maps of segments have names for
constexpr std::size_t kMaxMapBlocks = 20'000;  // of the map of a device

PageMap take_map(FragmentationDevice& device) {
  PageMap map;
  map.segments = std::move(device.map);
  std::stable_sort(map.segments.begin(), map.segments.end(),
                   [](const MapSegment& left, const MapSegment& right) { return left.size > right.size; });
  std::size_t blocks = 0;
  std::size_t kept = 0;
  for (; kept < map.segments.size(); ++kept) {
    blocks += map.segments[kept].blocks.size();
    if (blocks > kMaxMapBlocks) break;
  }
  leave_out(map, kept);
  return map;
}

std::map<StackId, NamedStack> name_map_stacks(const std::vector<PageMap>& maps, Symbols& symbols) {
  std::map<StackId, std::uint64_t> bytes;
  for (const PageMap& map : maps) {
    for (const MapSegment& segment : map.segments) {
      for (const MapBlock& block : segment.blocks) {
        if (block.state != MapBlock::State::free) bytes[block.stack] += block.size;
      }
    }
  }
  std::vector<std::pair<std::uint64_t, StackId>> largest;
  largest.reserve(bytes.size());
  for (const auto& [stack, size] : bytes) largest.emplace_back(size, stack);
  const std::size_t named = std::min(largest.size(), kMapStacks);
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(named), largest.end(),
                    [](const auto& left, const auto& right) {
                      return left.first != right.first ? left.first > right.first : left.second < right.second;
                    });
  std::map<StackId, NamedStack> names;
  for (std::size_t index = 0; index < named; ++index) {
    names.emplace(largest[index].second, name_stack(symbols, largest[index].second));
  }
  return names;
}

// By layer, or by what is known.
std::shared_ptr<const Breakdown> break_down(const Store& store, const Symbols& symbols, const PageOptions& options,
                                            const BlockFilter& chosen, const Attribution* attribution) {
  if (attribution == nullptr) return nullptr;
  BreakdownOptions what;
  what.filter = chosen;
  what.device = options.device;
  what.top = std::max<std::size_t>(1, options.rows);
  what.by = OwnerKind::layer;
  auto breakdown = analyze_breakdown(store, symbols, *attribution, what);
  if (breakdown) return std::make_shared<const Breakdown>(std::move(*breakdown));
  what.by.reset();
  breakdown = analyze_breakdown(store, symbols, *attribution, what);
  return breakdown ? std::make_shared<const Breakdown>(std::move(*breakdown)) : nullptr;
}

// Stacks tell phases and categories of recordings without an attribution of their own too. Keeps none that is given.
std::shared_ptr<const Attribution> owners_of(const Store& store, const Attribution* attribution) {
  if (attribution == nullptr) return std::make_shared<const Attribution>(attribute_blocks(store));
  return {std::shared_ptr<const Attribution>(), attribution};
}

void add_categories(Timeline& timeline, const Store& store, const Attribution& attribution, const BlockFilter& chosen) {
  const auto groups = OwnerGroups::create(store, attribution, OwnerKind::category);
  if (groups) add_owners(timeline, store, OwnerKind::category, *groups, chosen);
}

}  // namespace

Result<PageContents> collect_page_contents(const Store& store, Symbols& symbols, const PageOptions& options,
                                           const Attribution* attribution) {
  std::shared_ptr<const Attribution> owners;  // where a filter or the details need them
  BlockFilter chosen;
  if (!options.filter.empty()) {
    owners = owners_of(store, attribution);
    auto blocks = choose_blocks(store, *owners, options.filter);
    if (!blocks) return blocks.error();
    chosen = std::move(*blocks);
  }
  const auto breakdown = break_down(store, symbols, options, chosen, attribution);
  SummaryOptions what;
  what.device = options.device;
  what.top = std::min(kListed, options.rows);
  what.samples = collect_samples(store).devices;
  what.host = host_usage(store.samples.host);
  what.host_ledgers = collect_host(store);
  what.rank = options.rank;
  what.owners.breakdown = breakdown;
  if (!chosen.all()) {
    what.holders = Holders(chosen);
    what.blocks = {std::shared_ptr<const Store>(), &store};
  }
  auto summary = analyze_summary(store, symbols, what);
  if (!summary) return summary.error();
  const std::size_t listed = std::min(kListed, options.rows);
  PageContents contents;
  contents.summary = std::move(*summary);
  contents.recording = contents.summary.recording;
  if (!contents.is_detailed()) return contents;
  // The device is there, as the summary found: nothing below can fail.
  contents.timeline = *analyze_timeline(store, symbols, {options.device, options.points, chosen});
  if (owners == nullptr) owners = owners_of(store, attribution);
  contents.timeline.bands = find_bands(store, *owners, options.points);
  if (breakdown) {
    contents.breakdown = *breakdown;
    add_categories(contents.timeline, store, *attribution, chosen);
  }
  add_call_sites(contents.timeline, store, symbols, kMaxLayers, chosen);
  // One point a stretch; the timeline has up to four.
  if (auto ledger = analyze_ledger(store, symbols, {options.device, Moment{}, options.points / 2})) {
    contents.ledger = std::move(*ledger);
  }
  contents.table =
      *analyze_table(store, symbols, {GroupBy::stack, Moment{}, options.device, options.rows, nullptr, chosen});
  TreeOptions tree;
  tree.device = options.device;
  tree.min_share = options.min_share;
  tree.skip_interpreter = true;
  tree.filter = chosen;
  contents.tree = *analyze_tree(store, symbols, tree);
  tree.project_only = true;
  contents.project_tree = *analyze_tree(store, symbols, tree);
  FragmentationOptions fragmentation;
  fragmentation.device = options.device;
  fragmentation.top = listed;
  fragmentation.holders = Holders(chosen);
  if (!store.segment_changes.empty()) fragmentation.categories = holders_by_category(store, owners);
  contents.fragmentation = *analyze_fragmentation(store, symbols, fragmentation);
  for (FragmentationDevice& device : contents.fragmentation.devices) contents.maps.push_back(take_map(device));
  contents.map_stacks = name_map_stacks(contents.maps, symbols);
  TemporaryOptions temporary;
  temporary.device = options.device;
  temporary.top = listed;
  temporary.filter = chosen;
  contents.temporary = *analyze_temporary(store, symbols, temporary);
  LeakOptions leaks;
  leaks.device = options.device;
  leaks.top = listed;
  leaks.attribution = attribution;
  leaks.filter = chosen;
  contents.leaks = *analyze_leaks(store, symbols, leaks);
  contents.patterns =
      *analyze_patterns(store, symbols, {options.device, listed, &contents.leaks.steps, chosen, attribution});
  ExplainOptions explain;
  explain.device = options.device;
  explain.top = listed;
  explain.holders = Holders(chosen);
  explain.attribution = attribution;
  contents.explanation = *analyze_explain(store, symbols, explain);
  if (!contents.explanation.failures.empty()) contents.summary.failure = contents.explanation.failures.front();
  for (const Analysis& analysis : analyses()) {
    if (!analysis.table) continue;
    AnalysisOptions as_chosen(analysis.options);
    as_chosen.device = options.device;
    as_chosen.set("top", std::to_string(listed));
    // A page leaves out what a recording has not the data for.
    auto table = analysis.table(store, symbols, as_chosen);
    if (table) contents.tables.push_back({&analysis, std::move(*table)});
  }
  contents.recording = describe_recording(store, symbols);
  contents.recording.chosen_blocks = filter_text(options.filter);
  return contents;
}

}  // namespace tidemark::html
