// The memory of one device as the allocator keeps it: segments, each tiled by blocks in order of address.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "import/pytorch_snapshot/large_tables.h"

namespace tidemark::pytorch {

enum class SegmentKind : std::uint8_t {
  ordinary,    ///< one allocation from the driver, released as a whole
  expandable,  ///< mapped part by part; adjacent parts join
  implied,     ///< never reported, but a block lies there; adjacent parts join
};

enum class BlockUse : std::uint8_t {
  free,
  allocated,
  pending,  ///< freed by the program, still in use on another stream
};

using BlockIndex = std::uint32_t;

struct MapBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;  ///< of a block in use
  BlockIndex previous = 0;      ///< neighbours in the segment; SegmentMap::is_block() is false at its ends
  BlockIndex next = 0;
  std::uint32_t origin = 0;  ///< for the owner of the map: origin of the block
  std::uint32_t id = 0;      ///< for the owner of the map
  std::uint16_t pool = 0;
  BlockUse use = BlockUse::free;
  SegmentKind kind = SegmentKind::ordinary;
  bool initial = false;  ///< for the owner of the map: was in use before the trace

  [[nodiscard]] std::uint64_t end() const { return address + size; }
};

/// Segments never overlap; free blocks that are neighbours are one block, but for split_free(). Finding a block by its
/// address, allocating and freeing take constant time; a look-up inside a block and changes of segments logarithmic
/// time. Memory is proportional to the blocks and segments there are at once. Indices stay valid while the block
/// exists. Not thread-safe.
class SegmentMap {
 public:
  static constexpr BlockIndex kNone = AddressTable::kNone;

  static bool is_block(BlockIndex neighbour) { return neighbour < kEdge; }

  [[nodiscard]] const MapBlock& operator[](BlockIndex block) const { return blocks_[block]; }
  [[nodiscard]] MapBlock& operator[](BlockIndex block) { return blocks_[block]; }

  /// The block that starts at `address`, or kNone.
  [[nodiscard]] BlockIndex at(std::uint64_t address) const { return starts_.find(address); }
  /// The block that holds `address`, or kNone.
  [[nodiscard]] BlockIndex containing(std::uint64_t address);

  struct Range {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    SegmentKind kind = SegmentKind::ordinary;
    bool operator==(const Range&) const = default;
  };
  /// The segment that starts at `address`.
  [[nodiscard]] std::optional<Range> segment_at(std::uint64_t address) const;
  /// The first segment that holds any of [begin, end).
  [[nodiscard]] std::optional<Range> first_segment_in(std::uint64_t begin, std::uint64_t end) const;
  /// All segments in order of address; adjacent mapped parts of expandable ones are one.
  [[nodiscard]] std::vector<Range> segments() const;

  /// Adds free memory that no segment holds; size > 0 and address + size does not overflow.
  void reserve(const Range& range, std::uint16_t pool);
  /// Removes a free block from its segment, which shrinks, splits or vanishes.
  void release(BlockIndex free_block);

  /// Makes the first `size` ≤ its size bytes of a free block allocated; the rest stays free.
  void allocate(BlockIndex free_block, std::uint64_t size);
  /// Makes a block free and joins it with free neighbours.
  void free(BlockIndex block);
  /// Cuts a free block in two free blocks, the first of `size` bytes; returns the second. The caller allocates one of
  /// them.
  BlockIndex split_free(BlockIndex free_block, std::uint64_t size);
  /// Moves the end of a block in use; the rest is, or becomes, free. `size` is at most the block and the free block
  /// after it.
  void resize(BlockIndex block, std::uint64_t size);

  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }
  /// Bytes of free blocks that share an ordinary segment with others (torch's inactive_split_bytes).
  [[nodiscard]] std::uint64_t inactive_split() const { return inactive_split_; }
  /// Blocks of all kinds of use.
  [[nodiscard]] std::size_t size() const { return starts_.size(); }

 private:
  /// Neighbour at the end of a segment: kEdge | its slot.
  static constexpr BlockIndex kEdge = 0x80000000U;

  struct Segment {
    Range range;
    BlockIndex tail = kNone;  ///< its last block
  };

  BlockIndex add(const MapBlock& block);
  void remove(BlockIndex block);
  BlockIndex split_off(BlockIndex block, std::uint64_t size);
  void absorb_next(BlockIndex block);
  void link_next(BlockIndex block, BlockIndex next);
  std::uint32_t add_segment(const Range& range);
  void drop_segment(std::uint32_t slot);
  [[nodiscard]] std::uint32_t segment_of(std::uint64_t address) const;
  [[nodiscard]] std::uint64_t split_bytes(BlockIndex neighbour) const {
    if (!is_block(neighbour)) return 0;
    const MapBlock& block = blocks_[neighbour];
    const bool split = is_block(block.previous) || is_block(block.next);
    return block.use == BlockUse::free && block.kind == SegmentKind::ordinary && split ? block.size : 0;
  }
  void build_order();
  void note_order_change();

  std::vector<MapBlock> blocks_;
  std::vector<BlockIndex> unused_blocks_;
  AddressTable starts_;  ///< start of every block
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> unused_segments_;
  std::map<std::uint64_t, std::uint32_t> segment_starts_;
  /// Starts in order, for containing(): built when first needed, dropped when not needed for long, since it costs
  /// more than all else and complete traces never need it.
  std::map<std::uint64_t, BlockIndex> order_;
  bool ordered_ = false;
  std::size_t changes_since_use_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t inactive_split_ = 0;
};

}  // namespace tidemark::pytorch
