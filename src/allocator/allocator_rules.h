// How large PyTorch's caching allocator makes a block.
//
// The trace of a snapshot holds what was asked for. The block is that size rounded up, or all of the free block that it
// was taken from where the rest would be too small to keep. Source: c10/cuda/CUDACachingAllocator.cpp (round_size,
// roundup_power2_next_division, should_split), c10/core/AllocatorConfig (intervals of roundup_power2_divisions); the
// same from torch 2.0 to 2.15.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "allocator/settings.h"

namespace tidemark::pytorch {

/// Immutable; thread-safe. Sizes are bytes; sums saturate, so any input is fine.
class AllocatorRules {
 public:
  static constexpr std::uint64_t kMinBlockSize = 512;                  ///< every block is a multiple of it
  static constexpr std::uint64_t kSmallSize = std::uint64_t{1} << 20;  ///< up to here a block is of the small pool

  static constexpr std::uint64_t kLastInterval = 32768;  ///< MiB; the last key of roundup_power2_divisions

  explicit AllocatorRules(const AllocatorSettings& settings);
  /// Of another allocator: blocks are as large as the sizes that the file names.
  static AllocatorRules exact_sizes();

  /// The size of the block that a request needs at least.
  [[nodiscard]] std::uint64_t round_size(std::uint64_t requested) const;

  /// Whether a free block of `free_size` is split to serve a request that rounds to `rounded` ≤ free_size.
  /// `expandable`: expandable segments are in force for this request.
  [[nodiscard]] bool should_split(std::uint64_t free_size, std::uint64_t rounded, bool expandable) const;

  /// By how much a block may exceed the rounded request: what should_split() leaves unsplit at most.
  [[nodiscard]] std::uint64_t largest_excess(std::uint64_t rounded, bool expandable) const;

  /// Whether a free block of this size serves requests of at least max_split_size only.
  [[nodiscard]] bool is_oversize(std::uint64_t free_size) const { return free_size >= max_split_size_; }

  /// The setting expandable_segments, as of the end of the trace.
  [[nodiscard]] bool expandable_segments() const { return expandable_segments_; }

 private:
  static constexpr std::size_t kIntervals =
      std::bit_width(kLastInterval);  ///< by power of two: up to 2 MiB, 4 MiB, … 64 GiB and above

  std::array<std::uint64_t, kIntervals> divisions_{};
  std::uint64_t max_split_size_;
  bool expandable_segments_;
  bool exact_sizes_ = false;
  bool any_divisions_ = false;
};

}  // namespace tidemark::pytorch
