#include "analyze/common/call_sites.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "analyze/common/arithmetic.h"

namespace tidemark {
namespace {

// Stacks are one site when these agree: the frame shown and the leaf.
using CallSiteKey = std::tuple<std::string, std::string, std::uint32_t, std::string>;

CallSiteKey key_of(const NamedStack& stack) {
  if (stack.frames.empty()) return {};
  const FrameName& frame = stack.frames[stack.call_site];
  return {frame.function, frame.file, frame.line, stack.leaf ? stack.frames[*stack.leaf].function : std::string()};
}

}  // namespace

CallSites group_by_call_site(std::vector<StackUsage> usages, Symbols& symbols, std::uint64_t whole, std::size_t top) {
  std::sort(usages.begin(), usages.end(), [](const StackUsage& left, const StackUsage& right) {
    return left.bytes != right.bytes ? left.bytes > right.bytes : left.stack < right.stack;
  });
  CallSites result;
  std::vector<CallSite>& call_sites = result.call_sites;
  std::map<CallSiteKey, std::size_t> index_of;
  for (const StackUsage& usage : usages) {
    NamedStack stack = name_stack(symbols, usage.stack);
    const auto [entry, is_new] = index_of.try_emplace(key_of(stack), call_sites.size());
    if (is_new) call_sites.emplace_back().stack = std::move(stack);
    CallSite& site = call_sites[entry->second];
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
  // Where frees were lost, the recorded blocks are more than the allocator says.
  std::uint64_t recorded = 0;
  for (const StackUsage& usage : usages) recorded = saturating_add(recorded, usage.bytes);
  whole = std::max(whole, recorded);
  for (CallSite& site : call_sites) site.share = share_of(site.bytes, whole).value_or(0);
  return result;
}

}  // namespace tidemark
