// The memory of a device at a failed request, as PyTorch's caching allocator saw it: free blocks that the request could
// use, the size requested from the driver, and the effect of freeing some blocks earlier.
//
// Before it fails, the allocator releases every wholly free segment (of expandable ones every wholly free handle),
// except those of private pools in use, and except while a CUDA graph is captured. Source: malloc, alloc_block,
// get_allocation_size, release_cached_blocks and unmap_block in c10/cuda/CUDACachingAllocator.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "allocator/rules.h"
#include "analyze/fragmentation/segment_map.h"
#include "base/units.h"
#include "store/store.h"

namespace tidemark {

/// Free memory that the allocator keeps.
struct CachedMemory {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t largest = 0;  ///< block

  void add(std::uint64_t block);
};

/// Sizes of a request, in bytes.
struct OomRequest {
  std::uint64_t bytes = 0;    ///< of the block, rounded
  std::uint64_t segment = 0;  ///< of a new segment: PyTorch's "Tried to allocate", compared with a limit
  std::uint64_t driver = 0;   ///< free memory that the driver needs at most: whole handles for expandable segments
  pytorch::BlockPool pool = pytorch::BlockPool::large;
  bool expandable = false;  ///< expandable segments were in force
};

/// Free memory at the failure by whether the request could use it.
struct OomCache {
  CachedMemory usable;         ///< in segments of its stream, pool and kind
  CachedMemory other_streams;  ///< of other streams, same pool
  CachedMemory other_pools;    ///< of other pools: private ones, or the default one for a request in a private pool
  CachedMemory other_kinds;    ///< in segments for small blocks for a large request, or the other way round
  std::uint64_t pending = 0;   ///< bytes of blocks freed by the program that another stream still uses; not cached
  std::uint64_t whole_in_private_pools = 0;  ///< bytes of the cached ones in wholly free segments: such pools keep them
  std::uint64_t whole_in_default_pool = 0;   ///< bytes of the cached ones in wholly free segments of it: kept only
                                             ///< while a CUDA graph is captured
  std::uint64_t whole_handles = 0;           ///< bytes that handles of expandable segments would be free as a whole,
                                             ///< were the ordinary segments of the default pool such ones
};

/// A block at the failure.
struct OomBlock {
  std::uint32_t segment = 0;  ///< index into OomMemory::segments()
  std::uint32_t block = 0;    ///< index into its blocks
};

/// Memory that becomes available when some blocks are freed.
struct FreedMemory {
  std::uint64_t largest = 0;   ///< the largest block that becomes free and usable for the request
  std::uint64_t released = 0;  ///< bytes that would go back to the driver before the request fails
};

/// Immutable; thread-safe.
class OomMemory {
 public:
  /// `store` must contain segments.
  OomMemory(const Store& store, const OutOfMemory& failure, const OomRequest& request);

  [[nodiscard]] const std::vector<MapSegment>& segments() const { return segments_; }
  [[nodiscard]] const OomCache& cache() const { return cache_; }
  /// Whether a cached block should have met the request, although it failed: the block was of an unknown pool.
  [[nodiscard]] bool fits() const { return fits_; }
  /// Whether wholly free segments went back to the driver before the request failed.
  [[nodiscard]] bool flushed() const { return cache_.whole_in_default_pool == 0; }
  /// Memory that becomes free with these blocks, which must be in use; sorts them.
  [[nodiscard]] FreedMemory freeing(std::span<OomBlock> blocks) const;

 private:
  [[nodiscard]] bool usable(const MapSegment& segment) const;
  [[nodiscard]] bool takes(std::uint64_t block) const;
  void take_cached(const MapSegment& segment, std::uint64_t address, std::uint64_t bytes);
  void take_run(const MapSegment& segment, std::uint64_t from, std::uint64_t to, FreedMemory& freed) const;

  OomRequest request_;
  std::uint16_t stream_ = 0;
  std::uint16_t pool_ = 0;
  std::uint16_t default_pool_ = 0;
  pytorch::AllocatorRules rules_;
  std::vector<MapSegment> segments_;
  OomCache cache_;
  bool fits_ = false;
};

/// Sizes for a request of `bytes`, which the allocator has rounded.
[[nodiscard]] OomRequest size_request(std::uint64_t bytes, bool expandable);

/// Bytes by which memory outside PyTorch may have changed since the last sample, taken up to a tenth of a second before
/// the request: modules that were loaded since, and the like.
inline constexpr std::uint64_t kSampleMargin = 128 * kMiB;

/// Free memory of the device at the failed request, if memory outside PyTorch was as in the nearest sample: the first
/// one after the request, unless it has kSampleMargin less than the last one before; then that one.
struct SampledFree {
  std::uint64_t capacity = 0;
  std::uint64_t free = 0;
  std::uint64_t at_ns = 0;
  /// How far `free` may be off: the difference between the samples before and after the request.
  std::uint64_t margin = kSampleMargin;
  /// Used by other processes, in the latest list before the request; nullopt: a process of the list is not known, or
  /// the recorded process is not in it.
  std::optional<std::uint64_t> other_processes = {};
};

/// One for each of `failures` (indexes into Overview::out_of_memory), in one pass over the store's events. nullopt if
/// the source contains the value itself, or the samples are insufficient.
[[nodiscard]] std::vector<std::optional<SampledFree>> sampled_free(const Store& store,
                                                                   const std::vector<std::size_t>& failures);

}  // namespace tidemark
