#include "allocator/allocator_rules.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tidemark::pytorch {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// The next of `divisions` equal steps between two powers of two.
std::uint64_t next_division(std::uint64_t size, std::uint64_t divisions) {
  if (std::has_single_bit(size)) return size;
  const std::uint64_t floor = std::bit_floor(size);
  const std::uint64_t step = floor >> (static_cast<int>(std::bit_width(divisions)) - 1);
  if (step == 0) return floor > kUnlimited / 2 ? kUnlimited : floor << 1;
  const std::uint64_t down = size & ~(step - 1);
  if (down == size) return size;
  return down > kUnlimited - step ? kUnlimited : down + step;
}

}  // namespace

AllocatorRules::AllocatorRules(const AllocatorSettings& settings)
    : max_split_size_(settings.max_split_size.value_or(-1) < 0 ? kUnlimited
                                                               : static_cast<std::uint64_t>(*settings.max_split_size)),
      expandable_segments_(settings.expandable_segments.value_or(false)) {
  for (const auto& [mebibytes, divisions] : settings.roundup_power2_divisions) {
    if (!std::has_single_bit(mebibytes)) continue;
    const auto interval = static_cast<std::size_t>(std::countr_zero(mebibytes));
    if (interval >= kIntervals) continue;
    divisions_[interval] = divisions;
    any_divisions_ |= divisions > 1;
  }
}

AllocatorRules AllocatorRules::exact_sizes() {
  AllocatorRules rules{AllocatorSettings{}};
  rules.exact_sizes_ = true;
  return rules;
}

std::uint64_t AllocatorRules::round_size(std::uint64_t requested) const {
  if (exact_sizes_) return std::max<std::uint64_t>(requested, 1);
  if (requested < kMinBlockSize) return kMinBlockSize;
  if (any_divisions_) {
    const int power = static_cast<int>(std::bit_width(requested)) - 1;
    const auto interval = std::min(static_cast<std::size_t>(std::max(power - 20, 0)), kIntervals - 1);
    const std::uint64_t divisions = divisions_[interval];
    if (divisions > 1 && divisions <= kUnlimited / kMinBlockSize && requested > kMinBlockSize * divisions) {
      return next_division(requested, divisions);
    }
  }
  if (requested > kUnlimited - kMinBlockSize) return kUnlimited;
  return (requested + kMinBlockSize - 1) & ~(kMinBlockSize - 1);
}

bool AllocatorRules::should_split(std::uint64_t free_size, std::uint64_t rounded, bool expandable) const {
  const std::uint64_t rest = free_size - rounded;
  if (exact_sizes_) return rest > 0;
  if (rounded <= kSmallSize || expandable) return rest >= kMinBlockSize;
  return rounded < max_split_size_ && rest > kSmallSize;
}

std::uint64_t AllocatorRules::largest_excess(std::uint64_t rounded, bool expandable) const {
  if (exact_sizes_) return 0;
  if (rounded <= kSmallSize || expandable) return kMinBlockSize - 1;
  return rounded < max_split_size_ ? kSmallSize : kUnlimited;
}

}  // namespace tidemark::pytorch
