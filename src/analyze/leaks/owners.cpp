#include "analyze/leaks/owners.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidemark {
namespace {

void add_up(OwnedGrowth& sum, const OwnedGrowth& part) {
  sum.bytes_per_step += part.bytes_per_step;
  sum.held_bytes += part.held_bytes;
  sum.held_blocks += part.held_blocks;
}

}  // namespace

void GrowthSums::add(std::span<const StepSpan> held, double bytes_per_step) {
  std::unordered_map<std::uint32_t, OwnedGrowth> sums;
  std::uint64_t all = 0;
  for (const StepSpan& span : held) {
    add_up(sums[groups_.of(span.block.value)], {{}, 0, span.bytes, 1});
    all += span.bytes;
  }
  for (auto& [group, sum] : sums) {
    if (all != 0) sum.bytes_per_step = bytes_per_step * static_cast<double>(sum.held_bytes) / static_cast<double>(all);
    add_up(sums_[group], sum);
  }
}

GrowthByOwner GrowthSums::finish(OwnerKind kind, std::size_t top) const {
  std::vector<std::pair<std::uint32_t, OwnedGrowth>> sorted(sums_.begin(), sums_.end());
  std::ranges::sort(sorted, [](const auto& left, const auto& right) {
    const auto key = [](const OwnedGrowth& sum) { return std::pair(std::llround(sum.bytes_per_step), sum.held_bytes); };
    return key(left.second) != key(right.second) ? key(left.second) > key(right.second) : left.first < right.first;
  });
  GrowthByOwner result;
  result.kind = kind;
  result.other.owner.kind = kind;
  for (auto& [group, sum] : sorted) {
    if (top != 0 && result.rows.size() == top) {
      ++result.other_rows;
      add_up(result.other, sum);
      continue;
    }
    sum.owner = groups_.owner(group);
    result.rows.push_back(std::move(sum));
  }
  return result;
}

}  // namespace tidemark
