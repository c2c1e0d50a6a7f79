#include "analyze/call_site_layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analyze/common/call_sites.h"

namespace tidemark {
namespace {

// Which of the listed call sites a stack is of; each stack is named once.
class SiteOfStack {
 public:
  SiteOfStack(const std::vector<CallSite>& sites, std::size_t stacks, Symbols& symbols)
      : other_(sites.size()), known_(stacks + 1), symbols_(symbols) {
    for (std::size_t site = 0; site < sites.size(); ++site) sites_.emplace(shown_frames(sites[site].stack), site);
  }

  // The number of sites stands for all others.
  std::size_t operator()(StackId stack) {
    std::optional<std::size_t>& known = known_[std::min<std::size_t>(stack.value, known_.size() - 1)];
    if (!known) {
      const auto site = sites_.find(shown_frames(name_stack(symbols_, stack)));
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

CallSiteLayers layers_of(const Store& store, std::size_t device, const std::vector<TimelinePoint>& points,
                         Symbols& symbols, std::size_t top) {
  std::vector<CallSite> sites =
      group_by_call_site(usages_at_peak(store, device), symbols, store.devices[device].peak_allocated_bytes, top)
          .call_sites;
  SiteOfStack site_of(sites, store.definitions.stacks.size(), symbols);
  CallSiteLayers layers;
  for (CallSite& site : sites) layers.call_sites.push_back({std::move(site.stack), {}});
  std::vector<std::uint64_t> held(sites.size() + 1, 0);  // the last one: of other call sites
  std::uint64_t recorded = 0;
  std::size_t change = 0;
  for (const TimelinePoint& point : points) {
    for (; change < point.change_count; ++change) {
      const LiveChange& live = store.live_changes[change];
      if (store.blocks.device[live.block.value] != device) continue;
      const std::uint64_t size = store.blocks.size[live.block.value];
      const std::uint64_t difference = live.birth ? size : 0 - size;
      held[site_of(store.blocks.stack[live.block.value])] += difference;
      recorded += difference;
    }
    for (std::size_t site = 0; site < layers.call_sites.size(); ++site) {
      layers.call_sites[site].bytes.push_back(held[site]);
    }
    layers.other.push_back(held.back());
    layers.unrecorded.push_back(point.allocated_bytes > recorded ? point.allocated_bytes - recorded : 0);
  }
  return layers;
}

}  // namespace

void add_call_sites(Timeline& timeline, const Store& store, Symbols& symbols, std::size_t top) {
  for (TimelineSeries& series : timeline.series) {
    const auto device = std::find_if(store.devices.begin(), store.devices.end(),
                                     [&](const DeviceSummary& summary) { return summary.device == series.device; });
    if (device == store.devices.end()) continue;
    series.by_call_site =
        layers_of(store, static_cast<std::size_t>(device - store.devices.begin()), series.points, symbols, top);
  }
}

}  // namespace tidemark
