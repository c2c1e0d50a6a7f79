// The memory of a device when a request failed, as PyTorch's caching allocator saw it for that request: which free
// blocks the request could use, what it asked the driver for, and what would have changed had some blocks been free.
//
// Before it gives up the allocator hands every wholly free segment back (of expandable ones every wholly free handle),
// except those of private pools in use, and except while a CUDA graph is captured. Source: malloc, alloc_block,
// get_allocation_size, release_cached_blocks and unmap_block in c10/cuda/CUDACachingAllocator.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "allocator/rules.h"
#include "analyze/fragmentation/segment_map.h"
#include "store/store.h"

namespace tidemark {

/// Free memory that the allocator keeps.
struct CachedMemory {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t largest = 0;  ///< block

  void add(std::uint64_t block);
};

/// What a request asks for. All bytes.
struct OomRequest {
  std::uint64_t bytes = 0;    ///< of the block, rounded
  std::uint64_t segment = 0;  ///< of a new segment: PyTorch's "Tried to allocate", and what it holds against a limit
  std::uint64_t driver = 0;   ///< what the driver must have free at most: whole handles for expandable segments
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
  std::uint64_t whole_in_default_pool = 0;   ///< likewise: kept only while a CUDA graph is captured
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
  std::uint64_t largest = 0;   ///< the largest block that the request could use among those that become free
  std::uint64_t released = 0;  ///< bytes that would go back to the driver before the request fails
};

/// Immutable; thread-safe.
class OomMemory {
 public:
  /// `store` must know segments.
  OomMemory(const Store& store, const OutOfMemory& failure, const OomRequest& request);

  [[nodiscard]] const std::vector<MapSegment>& segments() const { return segments_; }
  [[nodiscard]] const OomCache& cache() const { return cache_; }
  /// Whether a cached block would do by the rules, and yet the request failed: it was of a pool that is not known.
  [[nodiscard]] bool fits() const { return fits_; }
  /// Whether wholly free segments went back to the driver before the request failed.
  [[nodiscard]] bool flushed() const { return cache_.whole_in_default_pool == 0; }
  /// What becomes free with these blocks, which must be in use; sorts them.
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

/// What a request of `bytes`, as rounded by the allocator, asks for.
[[nodiscard]] OomRequest size_request(std::uint64_t bytes, bool expandable);

/// The device had this much free when the request failed, if what is outside PyTorch was as in the last sample before.
struct SampledFree {
  std::uint64_t capacity = 0;
  std::uint64_t free = 0;
  std::uint64_t at_ns = 0;
};

/// One for each of `failures` (indexes into Overview::out_of_memory), in one pass over the store's events. None where
/// the source says it itself, or the samples do not tell.
[[nodiscard]] std::vector<std::optional<SampledFree>> sampled_free(const Store& store,
                                                                   const std::vector<std::size_t>& failures);

}  // namespace tidemark
