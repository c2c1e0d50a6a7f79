// The rules of PyTorch's caching allocator: how large a block and a segment are, which free block serves a request,
// when it is split, and what goes back to the driver.
//
// Source: class DeviceCachingAllocator in c10/cuda/CUDACachingAllocator.cpp, and its settings in
// c10/core/AllocatorConfig.h (before torch 2.8: c10/cuda/CUDAAllocatorConfig.h). Constants and functions are named as
// in the source. They are the same from torch 2.0 to 2.15; differences of a version are noted there.
//
// What malloc() does for a request, in this order:
//   1. round_size(); get_pool() of the rounded size, in the default pool or a private one (CUDA graphs, MemPool)
//   2. get_free_block(): among the free blocks of this pool and stream the smallest that is large enough, at the lowest
//      address among equal ones; refused if serves() is false. While expandable_segments is on, of two blocks of
//      expandable segments the one with less room counts as smaller, room being the block and the unmapped memory
//      after it; while it is off, blocks of expandable segments are skipped.
//   3. with a memory limit set (set_per_process_memory_fraction) and garbage_collection_threshold > 0: while more than
//      threshold * limit bytes are reserved, release the unsplit free blocks of the default large pool that were not
//      used for at least the average time
//   4. alloc_block(): get_allocation_size() from the driver, which also is what a memory limit is compared with; with
//      expandable_segments mapped_size() at most, at the lowest address that fits
//   5. release_available_cached_blocks(), only with max_split_size: release unsplit free blocks of at least that size,
//      the smallest one that is as large as the request, else the largest ones until they add up to it; then 4 again
//   6. release_cached_blocks(), unless a CUDA graph is captured: wait for pending frees, release every unsplit free
//      block of the default pools and of private pools no longer in use, unmap the whole_handles() of expandable
//      segments; then 4 again
//   7. OutOfMemoryError; the size in its trace entry is the rounded one
// The block comes from the front of the free block; the rest stays free if should_split(). A freed block joins its
// free neighbours in the segment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tidemark::pytorch {

/// The settings of PyTorch's caching allocator, with the names and values of `allocator_settings` in a memory snapshot
/// (torch 2.3 and later). An unknown value is nullopt; AllocatorRules uses PyTorch's default for it. Only settings of
/// PYTORCH_CUDA_ALLOC_CONF that affect the placement and size of blocks.
struct AllocatorSettings {
  std::optional<std::int64_t> max_split_size;          ///< bytes; -1, PyTorch's value if it was not set: no limit
  std::optional<double> garbage_collection_threshold;  ///< of the process's memory limit, 0 to 1; 0 = off
  std::optional<bool> expandable_segments;
  /// Size class → divisions; 0 or 1 = none. A class is named by its lower end in MiB, a power of two from 1 to 32768;
  /// the first includes all smaller sizes, the last all larger ones.
  std::map<std::uint64_t, std::uint64_t> roundup_power2_divisions;
  std::string text;  ///< PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF) as it was set
};

// All sizes are bytes.
inline constexpr std::uint64_t kMinBlockSize = 512;                       ///< sizes of blocks are multiples of this
inline constexpr std::uint64_t kSmallSize = std::uint64_t{1} << 20;       ///< largest block of the small pool
inline constexpr std::uint64_t kSmallBuffer = std::uint64_t{2} << 20;     ///< segment of the small pool
inline constexpr std::uint64_t kLargeBuffer = std::uint64_t{20} << 20;    ///< segment for less than kMinLargeAlloc;
                                                                          ///< newest versions: large_segment_size_mb,
                                                                          ///< which snapshots do not contain
inline constexpr std::uint64_t kMinLargeAlloc = std::uint64_t{10} << 20;  ///< from here on, a segment for each request
inline constexpr std::uint64_t kRoundLarge = std::uint64_t{2} << 20;      ///< such segments are multiples of this
/// Size classes of roundup_power2_divisions, by power of two: up to 2 MiB, 4 MiB, … 32 GiB, and above.
inline constexpr std::size_t kRoundUpPowerOfTwoIntervals = 16;

/// Each stream and each memory pool has two: blocks of one are never used for requests of the other.
enum class BlockPool : std::uint8_t { small, large };

/// The pool for blocks of this rounded size.
[[nodiscard]] constexpr BlockPool get_pool(std::uint64_t rounded) {
  return rounded <= kSmallSize ? BlockPool::small : BlockPool::large;
}

/// The pool that an ordinary segment belongs to: get_allocation_size() gives kSmallBuffer to the small pool only.
[[nodiscard]] constexpr BlockPool pool_of_segment(std::uint64_t segment_size) {
  return segment_size == kSmallBuffer ? BlockPool::small : BlockPool::large;
}

/// The size of the segment that is reserved for a block of this rounded size. Saturates.
[[nodiscard]] std::uint64_t get_allocation_size(std::uint64_t rounded);

/// Expandable segments are mapped and unmapped in handles of this size.
[[nodiscard]] constexpr std::uint64_t handle_size(BlockPool pool) {
  return pool == BlockPool::small ? kSmallBuffer : kLargeBuffer;
}

/// Size that an expandable segment maps for a block of this rounded size if none of it is mapped yet. Saturates.
[[nodiscard]] std::uint64_t mapped_size(std::uint64_t rounded);

/// Bytes of the handles that lie wholly in [begin, end), offsets in an expandable segment: the part of a free block
/// there that can be unmapped (ExpandableSegment::unmap).
[[nodiscard]] std::uint64_t whole_handles(std::uint64_t begin, std::uint64_t end, BlockPool pool);

/// The largest block of at least kMinLargeAlloc in a new segment of at most `available` bytes; 0 if there is none.
[[nodiscard]] std::uint64_t largest_new_block(std::uint64_t available, bool expandable);

/// The smallest multiple of kMinBlockSize that holds `requested`: minimum size of a block, with any settings.
/// Saturates.
[[nodiscard]] std::uint64_t round_to_min_block(std::uint64_t requested);

/// The rules that depend on settings. Immutable; thread-safe. Sums saturate, so any input is fine.
class AllocatorRules {
 public:
  explicit AllocatorRules(const AllocatorSettings& settings);
  /// Rules of an allocator without rounding: blocks have the requested sizes, and every rest is split off.
  static AllocatorRules exact_sizes();

  /// The size of the block that a request needs at least (round_size, roundup_power2_next_division).
  [[nodiscard]] std::uint64_t round_size(std::uint64_t requested) const;

  /// Whether a free block of `free_size` that get_free_block() found for a request that rounds to `rounded` ≤ free_size
  /// is used: a block of max_split_size or more only for requests as large, and not if it has kLargeBuffer or more
  /// left.
  [[nodiscard]] bool serves(std::uint64_t free_size, std::uint64_t rounded) const;

  /// Whether a free block of `free_size` is split to serve a request that rounds to `rounded` ≤ free_size.
  /// `expandable`: the setting expandable_segments is on; from torch 2.8 not for pools with a separate allocator.
  [[nodiscard]] bool should_split(std::uint64_t free_size, std::uint64_t rounded, bool expandable) const;

  /// Maximum excess of a block over the rounded request: the largest rest that should_split() leaves unsplit.
  [[nodiscard]] std::uint64_t largest_excess(std::uint64_t rounded, bool expandable) const;

  [[nodiscard]] bool expandable_segments() const { return expandable_segments_; }

 private:
  std::array<std::uint64_t, kRoundUpPowerOfTwoIntervals> divisions_{};
  std::uint64_t max_split_size_;
  bool expandable_segments_;
  bool exact_sizes_ = false;
  bool any_divisions_ = false;
};

}  // namespace tidemark::pytorch
