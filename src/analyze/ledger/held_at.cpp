#include "analyze/ledger/held_at.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "analyze/common/totals.h"

namespace tidemark {
namespace {

class Walk {
 public:
  explicit Walk(const Store& store) : store_(store) {
    driver_.reserve(store.devices.size());
    for (const DeviceSummary& device : store.devices) driver_.push_back(is_driver_memory(device.device));
  }

  void take(const DeviceTotals& totals) {
    held_.devices.resize(std::max(held_.devices.size(), totals.device + 1));
    held_.devices[totals.device] = {totals.allocated_bytes, totals.reserved_bytes};
    for (; taken_ < totals.change_count; ++taken_) take(store_.live_changes[taken_]);
  }
  const HeldMemory& held() {
    held_.driver_stacks.clear();
    std::copy_if(usages_.begin(), usages_.end(), std::back_inserter(held_.driver_stacks),
                 [](const StackUsage& usage) { return usage.blocks != 0; });
    return held_;
  }

 private:
  void take(const LiveChange& live_change) {
    const std::uint8_t device = store_.blocks.device[live_change.block.value];
    if (!driver_[device]) return;
    const StackId stack = store_.blocks.stack[live_change.block.value];
    const std::uint64_t size = store_.blocks.size[live_change.block.value];
    const auto [known, is_new] = usage_of_.try_emplace({device, stack.value}, usages_.size());
    if (is_new) usages_.push_back({device, stack, 0, 0});
    StackUsage& usage = usages_[known->second];
    usage.bytes = live_change.birth ? usage.bytes + size : usage.bytes - size;
    usage.blocks = live_change.birth ? usage.blocks + 1 : usage.blocks - 1;
  }

  const Store& store_;
  std::uint64_t taken_ = 0;   // of Store::live_changes, so many were taken
  std::vector<bool> driver_;  // by device
  std::map<std::pair<std::uint8_t, std::uint32_t>, std::size_t> usage_of_;
  std::vector<StackUsage> usages_;
  HeldMemory held_;
};

}  // namespace

void visit_held(const Store& store, const std::vector<std::uint64_t>& times_ns,
                const std::function<void(std::size_t, const HeldMemory&)>& visit) {
  Walk walk(store);
  std::size_t next = 0;
  walk_totals(store, [&](const DeviceTotals& totals) {
    for (; next < times_ns.size() && times_ns[next] < totals.time_ns; ++next) visit(next, walk.held());
    walk.take(totals);
  });
  for (; next < times_ns.size(); ++next) visit(next, walk.held());
}

}  // namespace tidemark
