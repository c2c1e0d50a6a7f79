// A model of PyTorch's caching allocator for one GPU, for machines without a PyTorch that can replay requests.
//
// It takes the steps listed in allocator/rules.h, in that order. Unlike the real one, it does not model: the addresses
// from the driver, which decide between free blocks of the same size (here the lowest free one is used), blocks that
// wait for events, and pools with a separate allocator.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/rules.h"
#include "analyze/plan/simulation.h"

namespace tidemark {

class AllocatorModel {
 public:
  using Handle = std::uint32_t;

  struct Limit {
    std::optional<std::uint64_t> bytes;
    bool by_fraction = false;  ///< otherwise the driver refuses
  };
  AllocatorModel(const pytorch::AllocatorSettings& settings, Limit limit);

  /// A block for a request; nullopt if there is no memory.
  std::optional<Handle> allocate(std::uint64_t requested, std::uint16_t stream, std::uint16_t pool);
  void free(Handle block);
  void empty_cache() { release_cached_blocks(); }
  /// The program gave up a private pool: its free segments can be released.
  void release_pool(std::uint16_t pool) { released_pools_.insert(pool); }

  /// Address of a block in use.
  [[nodiscard]] std::uint64_t address(Handle block) const { return blocks_[block].address; }
  [[nodiscard]] std::uint64_t size(Handle block) const { return blocks_[block].size; }
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }
  [[nodiscard]] AllocatorState state() const;
  [[nodiscard]] AllocatorOutcome outcome() const;

 private:
  static constexpr Handle kNone = 0xFFFFFFFF;
  enum class State : std::uint8_t { free, in_use, unmapped };
  using PoolKey = std::tuple<std::uint16_t, std::uint16_t, pytorch::BlockPool>;  // pool, stream, size of blocks
  struct Pool {
    std::set<std::pair<std::uint64_t, std::pair<std::uint64_t, Handle>>> free;  // by size, then address
    std::map<std::uint64_t, Handle> unmapped;                                   // by address
    std::uint64_t* searches = nullptr;  // get_free_blocks_call_count: of all streams
  };
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    Pool* pool = nullptr;
    PoolKey key;
    Handle before = kNone;  // neighbours in the segment
    Handle behind = kNone;
    State state = State::free;
    bool expandable = false;
    std::uint64_t free_since = 0;  // Pool::searches then
  };
  struct Search {
    PoolKey key;
    Pool* pool;
    std::uint64_t rounded;
  };

  Pool& pool_of(const PoolKey& key);
  Handle new_block(Block block);
  void insert_free(Handle block);
  void erase_free(Handle block);
  void merge_behind(Handle block);
  Handle split(Handle block, std::uint64_t front);

  Handle get_free_block(const Search& search);
  Handle alloc_block(const Search& search, bool retry);
  void garbage_collect_cached_blocks();
  bool release_available_cached_blocks(const Search& search);
  void release_cached_blocks();
  void release_block(Handle block);
  [[nodiscard]] bool is_whole(const Block& block) const { return block.before == kNone && block.behind == kNone; }
  [[nodiscard]] bool driver_has(std::uint64_t bytes) const;
  std::uint64_t take_addresses(std::uint64_t bytes);
  void give_addresses(std::uint64_t start, std::uint64_t bytes);
  void reserve(std::uint64_t bytes);

  // Expandable segments.
  [[nodiscard]] std::uint64_t room_of(Handle block) const;
  Handle find_expandable_block(const Search& search);
  Handle allocate_expandable(const Search& search);
  Handle map_block(Handle block, std::uint64_t bytes);
  void unmap_block(Handle block);

  pytorch::AllocatorRules rules_;
  std::uint64_t max_split_size_;
  double collection_threshold_;
  Limit limit_;
  std::map<PoolKey, Pool> pools_;
  std::map<std::pair<std::uint16_t, pytorch::BlockPool>, std::uint64_t> searches_;
  std::set<std::uint16_t> released_pools_;
  std::vector<Block> blocks_;
  std::vector<Handle> unused_;
  std::map<std::uint64_t, std::uint64_t> addresses_;  // ranges that no ordinary segment has, by start
  std::uint64_t segments_ = 0;                        // ordinary ones
  std::uint64_t next_expandable_;
  std::uint64_t reserved_ = 0;
  std::uint64_t allocated_ = 0;
  AllocatorOutcome outcome_;
};

}  // namespace tidemark
