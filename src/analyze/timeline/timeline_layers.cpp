#include "analyze/timeline/timeline_layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/common/call_sites.h"
#include "analyze/common/moment.h"

namespace tidemark {
namespace {

// Which of the listed call sites a stack is of; each stack is named once.
class SiteOfStack {
 public:
  SiteOfStack(const std::vector<CallSite>& sites, std::size_t stacks, Symbols& symbols)
      : other_(sites.size()), known_(stacks + 1), symbols_(symbols) {
    for (std::size_t site = 0; site < sites.size(); ++site) sites_.emplace(shown_place(sites[site].stack), site);
  }

  // The number of sites stands for all others.
  std::size_t operator()(StackId stack) {
    std::optional<std::size_t>& known = known_[std::min<std::size_t>(stack.value, known_.size() - 1)];
    if (!known) {
      const auto site = sites_.find(shown_place(name_stack(symbols_, stack)));
      known = site == sites_.end() ? other_ : site->second;
    }
    return *known;
  }

 private:
  std::map<std::string, std::size_t> sites_;
  std::size_t other_;
  std::vector<std::optional<std::size_t>> known_;  // by stack; blocks without one are last
  Symbols& symbols_;
};

// Fills in what the layers hold. `layer_of(block)` may be the number of layers, which stands for all others.
template <typename LayerOf>
void fill_layers(TimelineLayers& split, const Store& store, std::size_t device,
                 const std::vector<TimelinePoint>& points, const BlockFilter& filter, const LayerOf& layer_of) {
  std::vector<std::uint64_t> held(split.layers.size() + 1, 0);  // the last one: of others
  std::uint64_t recorded = 0;
  std::size_t change = 0;
  for (const TimelinePoint& point : points) {
    for (; change < point.change_count; ++change) {
      const LiveChange& live = store.live_changes[change];
      const std::uint32_t block = live.block.value;
      if (store.blocks.device[block] != device || !filter(block)) continue;
      const std::uint64_t size = store.blocks.size[block];
      const std::uint64_t difference = live.birth ? size : 0 - size;
      held[layer_of(block)] += difference;
      recorded += difference;
    }
    for (std::size_t layer = 0; layer < split.layers.size(); ++layer) split.layers[layer].bytes.push_back(held[layer]);
    split.other.push_back(held.back());
    split.unrecorded.push_back(point.allocated_bytes > recorded ? point.allocated_bytes - recorded : 0);
  }
}

Moment highest_of(const TimelineSeries& series, const BlockFilter& filter) {
  if (filter.all()) return {};
  return {Moment::Kind::time, series.peak_allocated_at_ns.value_or(0), 0};
}

// What the chosen blocks held when the series was highest, by stack.
std::vector<StackUsage> usages_when_highest(const Store& store, std::size_t device, const TimelineSeries& series,
                                            const BlockFilter& filter) {
  if (filter.all()) return usages_at_peak(store, device);
  std::unordered_map<StackId, StackUsage> usages;
  for (const BlockId block : held_blocks(store, highest_of(series, filter), device, filter).blocks) {
    StackUsage& usage = usages[store.blocks.stack[block.value]];
    usage.stack = store.blocks.stack[block.value];
    usage.bytes += store.blocks.size[block.value];
    ++usage.blocks;
  }
  std::vector<StackUsage> list;
  list.reserve(usages.size());
  for (const auto& [stack, usage] : usages) list.push_back(usage);
  return list;
}

// The groups that have a layer, the lowest first.
std::vector<std::uint32_t> listed_groups(const Store& store, std::size_t device, const TimelineSeries& series,
                                         OwnerKind by, const OwnerGroups& groups, const BlockFilter& filter,
                                         std::size_t top) {
  const bool all = by == OwnerKind::category || by == OwnerKind::phase;
  std::map<std::uint32_t, std::uint64_t> bytes;
  if (all) {
    for (std::size_t block = 0; block < store.blocks.count(); ++block) {
      if (store.blocks.device[block] == device && filter(block)) bytes[groups.of(block)] = 0;
    }
  } else {
    for (const BlockId block : held_blocks(store, highest_of(series, filter), device, filter).blocks) {
      bytes[groups.of(block.value)] += store.blocks.size[block.value];
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;
  sorted.reserve(bytes.size());
  for (const auto& [group, held] : bytes) sorted.emplace_back(held, group);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  if (!all && top != 0 && sorted.size() > top) sorted.resize(top);
  std::vector<std::uint32_t> listed;
  listed.reserve(sorted.size());
  for (const auto& [held, group] : sorted) listed.push_back(group);
  return listed;
}

template <typename Add>
void for_each_series(Timeline& timeline, const Store& store, const Add& add) {
  for (TimelineSeries& series : timeline.series) {
    const auto device = std::find_if(store.devices.begin(), store.devices.end(),
                                     [&](const DeviceSummary& summary) { return summary.device == series.device; });
    if (device != store.devices.end()) add(series, static_cast<std::size_t>(device - store.devices.begin()));
  }
}

}  // namespace

void add_call_sites(Timeline& timeline, const Store& store, Symbols& symbols, std::size_t top,
                    const BlockFilter& filter) {
  for_each_series(timeline, store, [&](TimelineSeries& series, std::size_t device) {
    std::vector<CallSite> sites = group_by_call_site(usages_when_highest(store, device, series, filter), symbols,
                                                     series.peak_allocated_bytes, top)
                                      .call_sites;
    SiteOfStack site_of(sites, store.definitions.stacks.size(), symbols);
    TimelineLayers split;
    for (CallSite& site : sites) split.layers.push_back({std::move(site.stack), {}, {}});
    fill_layers(split, store, device, series.points, filter,
                [&](std::uint32_t block) { return site_of(store.blocks.stack[block]); });
    series.splits.push_back(std::move(split));
  });
}

void add_owners(Timeline& timeline, const Store& store, OwnerKind by, const OwnerGroups& groups,
                const BlockFilter& filter, std::size_t top) {
  for_each_series(timeline, store, [&](TimelineSeries& series, std::size_t device) {
    TimelineLayers split;
    split.by = by;
    std::unordered_map<std::uint32_t, std::size_t> layer_of;
    for (const std::uint32_t group : listed_groups(store, device, series, by, groups, filter, top)) {
      layer_of.emplace(group, split.layers.size());
      split.layers.push_back({{}, groups.owner(group), {}});
    }
    fill_layers(split, store, device, series.points, filter, [&](std::uint32_t block) {
      const auto found = layer_of.find(groups.of(block));
      return found == layer_of.end() ? split.layers.size() : found->second;
    });
    series.splits.push_back(std::move(split));
  });
}

}  // namespace tidemark
