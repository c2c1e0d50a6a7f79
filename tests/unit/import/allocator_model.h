// PyTorch's caching allocator by the book, slow and simple: every answer is found by looking at all blocks. It writes
// the snapshot that PyTorch would write, and the totals that torch.cuda.memory_stats() would show after every entry.
//
// Written from the description in c10/cuda/CUDACachingAllocator.cpp, and shares nothing with the replay.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "import/pytorch_snapshot/replay/replay.h"

namespace tidemark::pytorch::testing {

struct ModelSettings {
  static constexpr std::uint64_t kNone = std::uint64_t{1} << 62;

  std::uint64_t max_split = kNone;                   ///< bytes
  std::map<std::uint64_t, std::uint64_t> divisions;  ///< of roundup_power2_divisions, by MiB
  bool expandable = false;                           ///< expandable_segments
  std::uint64_t large_segment = 20 << 20;            ///< for requests from 1 to 10 MiB
  std::uint64_t limit = kNone;                       ///< bytes that may be reserved
  std::uint16_t pools = 1;                           ///< 0 = the default one
  bool entries_name_pools = false;                   ///< as the newest files do
};

class AllocatorModel {
 public:
  explicit AllocatorModel(const ModelSettings& settings) : settings_(settings) {}

  /// The address of the new block; nullopt: out of memory.
  std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint16_t stream, std::uint16_t pool);
  /// `in_use`: another stream still uses the block, until complete().
  void free(std::uint64_t address, bool in_use);
  void complete(std::uint64_t address);
  /// Releases wholly free segments of the default pool only: other pools belong to graphs.
  void empty_cache();
  void mark() { note(Action::user_defined, 0, 0, 0, 0); }

  /// Addresses of the blocks in this state.
  [[nodiscard]] std::vector<std::uint64_t> blocks(BlockState state) const;
  [[nodiscard]] Snapshot snapshot() const;
  /// After each entry of the trace.
  [[nodiscard]] const std::vector<MemoryTotals>& totals() const { return totals_; }

 private:
  static constexpr BlockState kUnmapped = BlockState::unknown;  ///< address space of an expandable segment

  struct Block {
    std::uint64_t size = 0;
    std::uint64_t requested = 0;
    std::size_t segment = 0;
    BlockState state = BlockState::inactive;
  };
  using Blocks = std::map<std::uint64_t, Block>;
  struct Segment {
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< of an expandable one: of its address space
    std::uint16_t stream = 0;
    std::uint16_t pool = 0;
    bool small = false;
  };

  [[nodiscard]] std::uint64_t round(std::uint64_t size) const;
  [[nodiscard]] bool serves(const Block& block, const Segment& wanted) const;
  Blocks::iterator find_free(std::uint64_t size, const Segment& wanted);
  Blocks::iterator reserve(std::uint64_t size, const Segment& wanted);
  Blocks::iterator reserve_segment(std::uint64_t size, const Segment& wanted);
  Blocks::iterator expand(std::uint64_t size, const Segment& wanted);
  Blocks::iterator find_room(std::uint64_t size, const Segment& wanted);
  Blocks::iterator map(Blocks::iterator unmapped, std::uint64_t size);
  void unmap(Blocks::iterator block);
  void split(Blocks::iterator block, std::uint64_t size);
  Blocks::iterator merge(Blocks::iterator block);
  bool release_oversize(std::uint64_t size, const Segment& wanted);
  void release(Blocks::iterator block);
  std::uint64_t driver_address(std::uint64_t size);
  /// The next block of the same segment, or the end.
  Blocks::iterator after(Blocks::iterator block);
  Blocks::iterator before(Blocks::iterator block);
  void note(Action action, std::uint64_t address, std::uint64_t size, std::uint16_t stream, std::uint16_t pool);
  [[nodiscard]] MemoryTotals count() const;

  ModelSettings settings_;
  Blocks blocks_;                                 ///< by address
  std::vector<Segment> segments_;                 ///< including released ones
  std::map<std::uint64_t, std::uint64_t> holes_;  ///< released by ordinary segments: address → size
  std::uint64_t next_address_ = std::uint64_t{0x7f00} << 32;
  std::vector<TraceEntry> trace_;
  std::vector<MemoryTotals> totals_;
};

}  // namespace tidemark::pytorch::testing
