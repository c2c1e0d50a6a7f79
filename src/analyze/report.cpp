#include "analyze/report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analyze/ledger/replay.h"

namespace tidemark {
namespace {

constexpr std::size_t kListed = 10;            // of call sites, leaks, segments, ...
constexpr std::size_t kMapStacks = 200;        // that the maps of segments have names for
constexpr std::size_t kMaxMapBlocks = 20'000;  // of the map of a device

void leave_out(ReportMap& map, std::size_t kept) {
  for (std::size_t index = kept; index < map.segments.size(); ++index) {
    ++map.other_segments;
    map.other_bytes += map.segments[index].size;
  }
  map.segments.erase(map.segments.begin() + static_cast<std::ptrdiff_t>(kept), map.segments.end());
}

ReportMap take_map(FragmentationDevice& device) {
  ReportMap map;
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

std::map<StackId, NamedStack> name_map_stacks(const std::vector<ReportMap>& maps, Symbols& symbols) {
  std::map<StackId, std::uint64_t> bytes;
  for (const ReportMap& map : maps) {
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

// Shortens `list` to half and calls `left_out` for what goes.
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
  // Callees hold no more than their callers: below a node that goes, all go. Equals stay or go together.
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

Result<Report> analyze_report(const Store& store, Symbols& symbols, const ReportOptions& options) {
  auto summary = analyze_summary(store, symbols,
                                 {options.device, std::min(kListed, options.rows), collect_samples(store).devices});
  if (!summary) return summary.error();
  const std::size_t listed = std::min(kListed, options.rows);
  Report report;
  report.summary = std::move(*summary);
  // The device is there, as the summary found: nothing below can fail.
  report.timeline = *analyze_timeline(store, symbols, {options.device, options.points});
  // One point a stretch; the timeline has up to four.
  if (auto ledger = analyze_ledger(store, symbols, {options.device, Moment{}, options.points / 2})) {
    report.ledger = std::move(*ledger);
  }
  report.table = *analyze_table(store, symbols, {GroupBy::stack, Moment{}, options.device, options.rows});
  TreeOptions tree;
  tree.device = options.device;
  tree.min_share = options.min_share;
  tree.skip_interpreter = true;
  report.tree = *analyze_tree(store, symbols, tree);
  FragmentationOptions fragmentation;
  fragmentation.device = options.device;
  fragmentation.top = listed;
  report.fragmentation = *analyze_fragmentation(store, symbols, fragmentation);
  for (FragmentationDevice& device : report.fragmentation.devices) report.maps.push_back(take_map(device));
  report.map_stacks = name_map_stacks(report.maps, symbols);
  report.temporary = *analyze_temporary(store, symbols, {TemporaryOptions().within, options.device, listed});
  LeakOptions leaks;
  leaks.device = options.device;
  leaks.top = listed;
  report.leaks = *analyze_leaks(store, symbols, leaks);
  report.patterns = *analyze_patterns(store, symbols, {options.device, listed, &report.leaks.steps});
  ExplainOptions explain;
  explain.device = options.device;
  explain.top = listed;
  report.explanation = *analyze_explain(store, symbols, explain);
  report.recording = describe_recording(store, symbols);
  return report;
}

bool halve(Report& report) {
  bool shortened = false;
  const auto nothing = [](const auto&) {};
  for (SummaryDevice& device : report.summary.devices) {
    shortened |= halve_list(device.call_sites, [&](const CallSite& site) {
      ++device.other_call_sites;
      device.other_bytes += site.bytes;
    });
  }
  for (TableSection& section : report.table.sections) {
    shortened |= halve_list(section.rows, [&](const TableRow& row) {
      ++section.other_rows;
      section.other_bytes += row.bytes;
      section.other_blocks += row.blocks;
    });
  }
  for (TreeSection& section : report.tree.sections) shortened |= halve_tree(section);
  for (FragmentationDevice& device : report.fragmentation.devices) {
    shortened |= halve_list(device.segments, [&](const MapSegment& segment) {
      ++device.other_segments;
      device.other_free_bytes += segment.bytes(MapBlock::State::free);
    });
    shortened |= halve_list(device.pinning, [&](const PinningStack&) { ++device.other_pinning; });
  }
  for (ReportMap& map : report.maps) {
    shortened |= !map.segments.empty();
    leave_out(map, map.segments.size() / 2);
  }
  for (TemporaryDevice& device : report.temporary.devices) {
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
  for (PatternsDevice& device : report.patterns.devices) {
    if (device.kept_into_next_step) halve_pattern(*device.kept_into_next_step);
    halve_pattern(device.freed_after_allocation);
  }
  for (OomFailure& failure : report.explanation.failures) {
    shortened |= halve_list(failure.top_allocations, [&](const TopAllocation& allocation) {
      ++failure.other_allocations;
      failure.other_bytes += allocation.bytes;
    });
    shortened |= halve_list(failure.leaks, nothing);
  }
  shortened |= halve_list(report.leaks.leaks, nothing);  // counted in leak_count and non_leak_growth_count
  shortened |= halve_list(report.leaks.non_leak_growth, nothing);
  return shortened;
}

}  // namespace tidemark
