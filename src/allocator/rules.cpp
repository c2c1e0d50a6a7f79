#include "allocator/rules.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tidemark::pytorch {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::uint64_t round_up(std::uint64_t size, std::uint64_t unit) {
  return size > kUnlimited - unit ? kUnlimited : (size + unit - 1) / unit * unit;
}

std::uint64_t round_down(std::uint64_t size, std::uint64_t unit) {
  return size / unit * unit;
}

/// The next of `divisions` equal steps between two powers of two (roundup_power2_next_division).
std::uint64_t next_division(std::uint64_t size, std::uint64_t divisions) {
  if (std::has_single_bit(size)) return size;
  const std::uint64_t floor = std::bit_floor(size);
  const std::uint64_t step = floor >> (static_cast<int>(std::bit_width(divisions)) - 1);
  if (step == 0) return floor > kUnlimited / 2 ? kUnlimited : floor << 1;
  const std::uint64_t down = size & ~(step - 1);
  if (down == size) return size;
  return down > kUnlimited - step ? kUnlimited : down + step;
}

/// The class of roundup_power2_divisions that a size belongs to.
std::size_t interval_of(std::uint64_t size) {
  constexpr int kFirst = 20;  // 1 MiB
  const int power = static_cast<int>(std::bit_width(size)) - 1;
  return std::min(static_cast<std::size_t>(std::max(power - kFirst, 0)), kRoundUpPowerOfTwoIntervals - 1);
}

}  // namespace

std::uint64_t get_allocation_size(std::uint64_t rounded) {
  if (rounded <= kSmallSize) return kSmallBuffer;
  if (rounded < kMinLargeAlloc) return kLargeBuffer;
  return round_up(rounded, kRoundLarge);
}

std::uint64_t mapped_size(std::uint64_t rounded) {
  return round_up(rounded, handle_size(get_pool(rounded)));
}

std::uint64_t whole_handles(std::uint64_t begin, std::uint64_t end, BlockPool pool) {
  const std::uint64_t first = round_up(begin, handle_size(pool));
  const std::uint64_t last = round_down(end, handle_size(pool));
  return last > first ? last - first : 0;
}

std::uint64_t largest_new_block(std::uint64_t available, bool expandable) {
  const std::uint64_t largest = round_down(available, expandable ? handle_size(BlockPool::large) : kRoundLarge);
  return largest < kMinLargeAlloc ? 0 : largest;
}

std::uint64_t round_to_min_block(std::uint64_t requested) {
  return std::max(kMinBlockSize, round_up(requested, kMinBlockSize));
}

AllocatorRules::AllocatorRules(const AllocatorSettings& settings)
    : max_split_size_(settings.max_split_size.value_or(-1) < 0 ? kUnlimited
                                                               : static_cast<std::uint64_t>(*settings.max_split_size)),
      expandable_segments_(settings.expandable_segments.value_or(false)) {
  for (const auto& [mebibytes, divisions] : settings.roundup_power2_divisions) {
    if (!std::has_single_bit(mebibytes)) continue;
    const auto interval = static_cast<std::size_t>(std::countr_zero(mebibytes));
    if (interval >= kRoundUpPowerOfTwoIntervals) continue;
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
  if (any_divisions_ && requested > kMinBlockSize) {
    const std::uint64_t divisions = divisions_[interval_of(requested)];
    if (divisions > 1 && divisions <= kUnlimited / kMinBlockSize && requested > kMinBlockSize * divisions) {
      return next_division(requested, divisions);
    }
  }
  return round_to_min_block(requested);
}

bool AllocatorRules::serves(std::uint64_t free_size, std::uint64_t rounded) const {
  return rounded < max_split_size_ ? free_size < max_split_size_ : free_size - rounded < kLargeBuffer;
}

bool AllocatorRules::should_split(std::uint64_t free_size, std::uint64_t rounded, bool expandable) const {
  const std::uint64_t rest = free_size - rounded;
  if (exact_sizes_) return rest > 0;
  if (get_pool(rounded) == BlockPool::small || expandable) return rest >= kMinBlockSize;
  return rounded < max_split_size_ && rest > kSmallSize;
}

std::uint64_t AllocatorRules::largest_excess(std::uint64_t rounded, bool expandable) const {
  if (exact_sizes_) return 0;
  if (get_pool(rounded) == BlockPool::small || expandable) return kMinBlockSize - 1;
  return rounded < max_split_size_ ? kSmallSize : kUnlimited;
}

}  // namespace tidemark::pytorch
