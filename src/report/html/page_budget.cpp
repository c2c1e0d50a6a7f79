#include "report/html/page_budget.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tidemark::html {
namespace {

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
  shortened |= halve_list(contents.leaks.leaks, nothing);  // counted in leak_count and non_leak_growth_count
  shortened |= halve_list(contents.leaks.small_leaks, nothing);
  shortened |= halve_list(contents.leaks.non_leak_growth, nothing);
  for (PageTable& page : contents.tables) {
    for (ResultSection& section : page.table.sections) {
      shortened |= !section.rows.empty();
      keep_rows(section, page.table.columns, section.rows.size() / 2);
    }
  }
  return shortened;
}

}  // namespace tidemark::html
