#include "analyze/common/call_sites.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "analyze/common/moment.h"
#include "base/arithmetic.h"

namespace tidemark {

std::vector<StackUsage> usages_at_peak(const Overview& overview, std::size_t device) {
  std::vector<StackUsage> usages;
  for (const StackUsage& usage : overview.stacks_at_peak) {
    if (usage.device == device) usages.push_back(usage);
  }
  return usages;
}

std::vector<StackUsage> usages_at_peak(const Store& store, std::size_t device, const Holders& holders) {
  std::map<StackId, StackUsage> usages;
  for (const BlockId block : live_blocks(store, device, store.devices[device].peak_change_count)) {
    if (!holders.lists(block.value)) continue;
    const StackId row = holders.of(store, block.value);
    StackUsage& usage = usages[row];
    usage.device = static_cast<std::uint8_t>(device);
    usage.stack = row;
    usage.bytes += store.blocks.size[block.value];
    ++usage.blocks;
  }
  std::vector<StackUsage> list;
  list.reserve(usages.size());
  for (const auto& [row, usage] : usages) list.push_back(usage);
  return list;
}

CallSites group_by_call_site(std::vector<StackUsage> usages, Symbols& symbols, std::uint64_t whole, std::size_t top,
                             const Holders& holders) {
  std::sort(usages.begin(), usages.end(), [](const StackUsage& left, const StackUsage& right) {
    return left.bytes != right.bytes ? left.bytes > right.bytes : left.stack < right.stack;
  });
  CallSites result;
  std::vector<CallSite>& call_sites = result.call_sites;
  std::map<std::string, std::size_t> index_of;
  for (const StackUsage& usage : usages) {
    NamedStack stack = holders.name(symbols, usage.stack);
    const std::string place = stack.owner ? std::to_string(usage.stack.value) : shown_place(stack);
    const auto [entry, is_new] = index_of.try_emplace(place, call_sites.size());
    const std::string shown = shown_frames(stack);
    if (is_new) call_sites.emplace_back().stack = std::move(stack);
    CallSite& site = call_sites[entry->second];
    if (site.stack.module && shown_frames(site.stack) != shown) site.stack.module.reset();
    site.bytes += usage.bytes;
    site.blocks += usage.blocks;
    ++site.stacks;
  }
  std::stable_sort(call_sites.begin(), call_sites.end(),
                   [](const CallSite& left, const CallSite& right) { return left.bytes > right.bytes; });
  for (std::size_t index = top; top != 0 && index < call_sites.size(); ++index) {
    ++result.other_call_sites;
    result.other_bytes += call_sites[index].bytes;
  }
  if (top != 0 && call_sites.size() > top) call_sites.resize(top);
  // If free events were lost, the recorded blocks exceed the allocator's total.
  std::uint64_t recorded = 0;
  for (const StackUsage& usage : usages) recorded = saturating_add(recorded, usage.bytes);
  whole = std::max(whole, recorded);
  tell_rows_apart(call_sites, &CallSite::stack);
  for (CallSite& site : call_sites) site.share = share_of(site.bytes, whole).value_or(0);
  return result;
}

}  // namespace tidemark
