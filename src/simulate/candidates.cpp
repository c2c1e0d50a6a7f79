#include "simulate/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "allocator/rules.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kMaxSplitSize = 1 << 20;  // MiB; blocks of which no GPU has one are not worth a setting

// Powers of two above the median of the requests that have a segment for themselves, above nine tenths of them, and
// between: max_split_size keeps larger blocks whole.
std::set<std::uint64_t> split_sizes(const Store& store, const Requests& requests) {
  std::array<std::uint64_t, 64> counts{};
  std::uint64_t all = 0;
  visit_requests(store, requests, [&](const Request& request) {
    if (request.kind == Request::Kind::allocate && request.size >= pytorch::kMinLargeAlloc) {
      ++counts[static_cast<std::size_t>(std::bit_width(request.size)) % counts.size()];
      ++all;
    }
    return true;
  });
  std::set<std::uint64_t> sizes;
  std::uint64_t below = 0;
  for (std::size_t bits = 0; bits < counts.size() && all != 0; ++bits) {
    const std::uint64_t before = below;
    below += counts[bits];
    for (const std::uint64_t percent : {50U, 75U, 90U}) {
      if (before * 100 >= all * percent || below * 100 < all * percent) continue;
      const std::uint64_t size = (std::uint64_t{1} << bits) / kMiB;
      if (size > pytorch::kLargeBuffer / kMiB && size <= kMaxSplitSize) sizes.insert(size);
    }
  }
  return sizes;
}

}  // namespace

std::vector<SettingList> candidate_settings(const Store& store, const Requests& requests, const SettingList& recorded,
                                            bool limited) {
  std::vector<SettingList> changes = {{{"expandable_segments", "True"}}, {{"expandable_segments", "False"}}};
  const std::set<std::uint64_t> splits = split_sizes(store, requests);
  for (const std::uint64_t size : splits) changes.push_back({{"max_split_size_mb", fmt::format("{}", size)}});
  for (const char* divisions : {"4", "8", "16"}) changes.push_back({{"roundup_power2_divisions", divisions}});
  if (limited) {
    changes.push_back({{"garbage_collection_threshold", "0.8"}});
    if (!splits.empty()) {
      changes.push_back(
          {{"max_split_size_mb", fmt::format("{}", *splits.rbegin())}, {"garbage_collection_threshold", "0.8"}});
    }
  }
  // What changes nothing is not tried: to PyTorch, False is the same as no expandable_segments.
  SettingList base = recorded;
  if (std::none_of(base.begin(), base.end(), [](const auto& each) { return each.first == "expandable_segments"; })) {
    base.emplace_back("expandable_segments", "False");
  }
  std::erase_if(changes, [&](const SettingList& change) { return with_changes(base, change) == base; });
  return changes;
}

}  // namespace tidemark
