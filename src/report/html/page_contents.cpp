#include "report/html/page_contents.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "analyze/common/holders.h"
#include "analyze/ledger/replay.h"
#include "analyze/timeline/timeline.h"

namespace tidemark::html {
namespace {

constexpr std::size_t kListed = 10;            // of call sites, leaks, segments, ...
constexpr std::size_t kMapStacks = 200;        // maximum number of named stacks in the maps of segments
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

// By layer, or by the first known kind.
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

// Computes phases and categories from stacks for recordings without attribution data. Returns `given` unchanged if set.
std::shared_ptr<const Attribution> owners_of(const Store& store, const Attribution* attribution) {
  if (attribution == nullptr) return std::make_shared<const Attribution>(attribute_blocks(store));
  return {std::shared_ptr<const Attribution>(), attribution};
}

void add_categories(Timeline& timeline, const Store& store, const Attribution& attribution, const BlockFilter& chosen) {
  const auto groups = OwnerGroups::create(store, attribution, OwnerKind::category);
  if (groups) add_owners(timeline, store, OwnerKind::category, *groups, chosen);
}

// Shortens `list` to half and calls `left_out` for the removed items.
template <typename T, typename LeftOut>
bool halve_list(std::vector<T>& list, const LeftOut& left_out) {
  const std::size_t kept = list.size() / 2;
  for (std::size_t index = kept; index < list.size(); ++index) left_out(list[index]);
  const bool shortened = kept < list.size();
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(kept), list.end());
  return shortened;
}

bool halve_tree(TreeSection& section) {
  if (section.nodes.empty()) return false;
  std::vector<std::uint64_t> bytes;
  bytes.reserve(section.nodes.size());
  for (const TreeNode& node : section.nodes) bytes.push_back(node.bytes);
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
  std::nth_element(bytes.begin(), middle, bytes.end());
  // Callees hold no more than their callers: below a removed node, all are removed. Equal ones are kept or removed
  // together.
  std::uint64_t least = *middle;
  if (*std::min_element(bytes.begin(), bytes.end()) == least) ++least;
  std::vector<TreeNode> kept;
  kept.reserve(section.nodes.size());
  std::vector<std::size_t> path;  // the callers of the node at hand, in `kept`
  std::uint32_t gone_depth = TreeOptions::kMaxDepth + 1;
  for (TreeNode& node : section.nodes) {
    if (node.depth > gone_depth) continue;  // below one that went
    path.resize(std::min<std::size_t>(path.size(), node.depth));
    if (node.bytes >= least) {
      gone_depth = TreeOptions::kMaxDepth + 1;
      path.push_back(kept.size());
      kept.push_back(std::move(node));
      continue;
    }
    gone_depth = node.depth;
    HiddenNodes& hidden = path.empty() ? section.hidden : kept[path.back()].hidden;
    ++hidden.count;
    hidden.bytes += node.bytes;
    hidden.blocks += node.blocks;
  }
  section.nodes = std::move(kept);
  return true;
}

}  // namespace

Result<PageContents> collect_page_contents(const Store& store, Symbols& symbols, const PageOptions& options,
                                           const Attribution* attribution) {
  std::shared_ptr<const Attribution> owners;  // if a filter or the details need them
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
  if (store.source.kind == SourceKind::pytorch_snapshot && !store.definitions.stacks.empty()) {
    if (owners == nullptr) owners = owners_of(store, attribution);
    what.owners.breakdown = break_down(store, symbols, options, chosen, owners.get());
  }
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
  // The device exists, as the summary succeeded: nothing below can fail.
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
  explain.attribution = owners.get();
  contents.explanation = *analyze_explain(store, symbols, explain);
  if (!contents.explanation.failures.empty()) contents.summary.failure = contents.explanation.failures.front();
  for (const Analysis& analysis : analyses()) {
    if (!analysis.table) continue;
    AnalysisOptions as_chosen(analysis.options);
    as_chosen.device = options.device;
    as_chosen.set("top", std::to_string(listed));
    // A page leaves out analyses for which the recording has no data.
    auto table = analysis.table(store, symbols, as_chosen);
    if (table) contents.tables.push_back({&analysis, std::move(*table)});
  }
  contents.recording = describe_recording(store, symbols);
  contents.recording.chosen_blocks = filter_text(options.filter);
  return contents;
}

void leave_out(PageMap& map, std::size_t kept) {
  for (std::size_t index = kept; index < map.segments.size(); ++index) {
    ++map.other_segments;
    map.other_bytes += map.segments[index].size;
  }
  map.segments.erase(map.segments.begin() + static_cast<std::ptrdiff_t>(kept), map.segments.end());
}

bool halve(PageContents& contents) {
  bool shortened = false;
  const auto nothing = [](const auto&) {};
  for (SummaryDevice& device : contents.summary.devices) {
    shortened |= halve_list(device.call_sites, [&](const CallSite& site) {
      ++device.other_call_sites;
      device.other_bytes += site.bytes;
    });
  }
  if (contents.breakdown) {
    for (BreakdownDevice& device : contents.breakdown->devices) {
      for (BreakdownGroup& group : device.groups) {
        shortened |= halve_list(group.rows, [&](const BreakdownRow& row) {
          ++group.other_rows;
          group.other_bytes += row.bytes;
          group.other_blocks += row.blocks;
        });
      }
    }
  }
  for (TimelineSeries& series : contents.timeline.series) {
    for (TimelineLayers& split : series.splits) {
      shortened |= halve_list(split.layers, [&](const TimelineLayers::Layer& layer) {
        for (std::size_t index = 0; index < split.other.size(); ++index) split.other[index] += layer.bytes[index];
      });
    }
  }
  for (TableSection& section : contents.table.sections) {
    shortened |= halve_list(section.rows, [&](const TableRow& row) {
      ++section.other_rows;
      section.other_bytes += row.bytes;
      section.other_blocks += row.blocks;
    });
  }
  for (Tree* tree : {&contents.tree, &contents.project_tree}) {
    for (TreeSection& section : tree->sections) shortened |= halve_tree(section);
  }
  for (FragmentationDevice& device : contents.fragmentation.devices) {
    shortened |= halve_list(device.segments, [&](const MapSegment& segment) {
      ++device.other_segments;
      device.other_free_bytes += segment.bytes(MapBlock::State::free);
    });
    shortened |= halve_list(device.pinning, [&](const PinningStack&) { ++device.other_pinning; });
  }
  for (PageMap& map : contents.maps) {
    shortened |= !map.segments.empty();
    leave_out(map, map.segments.size() / 2);
  }
  for (TemporaryDevice& device : contents.temporary.devices) {
    shortened |= halve_list(device.rows, [&](const TemporaryRow& row) {
      ++device.other_rows;
      device.other_count += row.count;
      device.other_bytes += row.bytes;
    });
  }
  const auto halve_pattern = [&](Pattern& pattern) {
    shortened |= halve_list(pattern.rows, [&](const PatternRow& row) {
      ++pattern.other_rows;
      pattern.other_peak_bytes += row.peak_bytes;
    });
  };
  for (PatternsDevice& device : contents.patterns.devices) {
    if (device.kept_into_next_step) halve_pattern(*device.kept_into_next_step);
    halve_pattern(device.freed_after_allocation);
  }
  for (OomFailure& failure : contents.explanation.failures) {
    shortened |= halve_list(failure.top_allocations, [&](const TopAllocation& allocation) {
      ++failure.other_allocations;
      failure.other_bytes += allocation.bytes;
    });
    shortened |= halve_list(failure.leaks, nothing);
  }
  shortened |= halve_list(contents.leaks.leaks, nothing);  // their counts stay
  shortened |= halve_list(contents.leaks.small_leaks, nothing);
  shortened |= halve_list(contents.leaks.non_leak_growth, nothing);
  shortened |= halve_list(contents.leaks.kept_over_steps, nothing);
  for (PageTable& page : contents.tables) {
    for (ResultSection& section : page.table.sections) {
      shortened |= !section.rows.empty();
      keep_rows(section, page.table.columns, section.rows.size() / 2);
    }
  }
  return shortened;
}

}  // namespace tidemark::html
