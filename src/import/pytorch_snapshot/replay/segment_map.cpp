#include "import/pytorch_snapshot/replay/segment_map.h"

#include <iterator>

namespace tidemark::pytorch {

// ---- blocks ----

BlockIndex SegmentMap::add(const MapBlock& block) {
  BlockIndex index;
  if (unused_blocks_.empty()) {
    index = static_cast<BlockIndex>(blocks_.size());
    blocks_.push_back(block);
  } else {
    index = unused_blocks_.back();
    unused_blocks_.pop_back();
    blocks_[index] = block;
  }
  starts_.insert(block.address, index);
  if (ordered_) {
    order_.emplace(block.address, index);
    note_order_change();
  }
  return index;
}

void SegmentMap::remove(BlockIndex block) {
  starts_.erase(blocks_[block].address);
  if (ordered_) {
    order_.erase(blocks_[block].address);
    note_order_change();
  }
  unused_blocks_.push_back(block);
}

void SegmentMap::link_next(BlockIndex block, BlockIndex next) {
  blocks_[block].next = next;
  if (is_block(next)) {
    blocks_[next].previous = block;
  } else {
    segments_[next & ~kEdge].tail = block;
  }
}

BlockIndex SegmentMap::split_off(BlockIndex block, std::uint64_t size) {
  MapBlock rest = blocks_[block];
  rest.address += size;
  rest.size -= size;
  rest.requested = 0;
  rest.use = BlockUse::free;
  rest.initial = false;
  rest.previous = block;
  const BlockIndex index = add(rest);
  link_next(index, rest.next);
  blocks_[block].next = index;
  blocks_[block].size = size;
  return index;
}

void SegmentMap::absorb_next(BlockIndex block) {
  const BlockIndex next = blocks_[block].next;
  blocks_[block].size += blocks_[next].size;
  link_next(block, blocks_[next].next);
  remove(next);
}

void SegmentMap::allocate(BlockIndex free_block, std::uint64_t size) {
  inactive_split_ -= split_bytes(free_block);
  if (size < blocks_[free_block].size) inactive_split_ += split_bytes(split_off(free_block, size));
  blocks_[free_block].use = BlockUse::allocated;
}

void SegmentMap::free(BlockIndex block) {
  blocks_[block].use = BlockUse::free;
  const BlockIndex next = blocks_[block].next;
  if (is_block(next) && blocks_[next].use == BlockUse::free) {
    inactive_split_ -= split_bytes(next);
    absorb_next(block);
  }
  const BlockIndex previous = blocks_[block].previous;
  if (is_block(previous) && blocks_[previous].use == BlockUse::free) {
    inactive_split_ -= split_bytes(previous);
    absorb_next(previous);
    block = previous;
  }
  inactive_split_ += split_bytes(block);
}

BlockIndex SegmentMap::split_free(BlockIndex free_block, std::uint64_t size) {
  inactive_split_ -= split_bytes(free_block);
  const BlockIndex rest = split_off(free_block, size);
  inactive_split_ += split_bytes(free_block) + split_bytes(rest);
  return rest;
}

void SegmentMap::resize(BlockIndex block, std::uint64_t size) {
  const BlockIndex next = blocks_[block].next;
  if (is_block(next) && blocks_[next].use == BlockUse::free) {
    inactive_split_ -= split_bytes(next);
    absorb_next(block);
  }
  if (size < blocks_[block].size) inactive_split_ += split_bytes(split_off(block, size));
}

// ---- look-ups ----

BlockIndex SegmentMap::containing(std::uint64_t address) {
  if (const BlockIndex exact = at(address); exact != kNone) return exact;
  if (!ordered_) build_order();
  changes_since_use_ = 0;
  const auto after = order_.upper_bound(address);
  if (after == order_.begin()) return kNone;
  const BlockIndex block = std::prev(after)->second;
  return address - blocks_[block].address < blocks_[block].size ? block : kNone;
}

void SegmentMap::build_order() {
  for (const auto& [start, slot] : segment_starts_) {
    for (BlockIndex block = at(start); is_block(block); block = blocks_[block].next) {
      order_.emplace_hint(order_.end(), blocks_[block].address, block);
    }
  }
  ordered_ = true;
}

void SegmentMap::note_order_change() {
  // Building costs about as much as this many changes, so dropping it never costs more than twice the best.
  if (++changes_since_use_ <= 4 * starts_.size() + 1024) return;
  order_.clear();
  ordered_ = false;
}

// ---- segments ----

std::uint32_t SegmentMap::segment_of(std::uint64_t address) const {
  return std::prev(segment_starts_.upper_bound(address))->second;
}

std::optional<SegmentMap::Range> SegmentMap::segment_at(std::uint64_t address) const {
  const auto found = segment_starts_.find(address);
  if (found == segment_starts_.end()) return std::nullopt;
  return segments_[found->second].range;
}

std::optional<SegmentMap::Range> SegmentMap::first_segment_in(std::uint64_t begin, std::uint64_t end) const {
  const auto after = segment_starts_.upper_bound(begin);
  if (after != segment_starts_.begin()) {
    const Range& range = segments_[std::prev(after)->second].range;
    if (begin - range.address < range.size) return range;
  }
  if (after == segment_starts_.end() || after->first >= end) return std::nullopt;
  return segments_[after->second].range;
}

std::vector<SegmentMap::Range> SegmentMap::segments() const {
  std::vector<Range> ranges;
  ranges.reserve(segment_starts_.size());
  for (const auto& [start, slot] : segment_starts_) ranges.push_back(segments_[slot].range);
  return ranges;
}

std::uint32_t SegmentMap::add_segment(const Range& range) {
  std::uint32_t slot;
  if (unused_segments_.empty()) {
    slot = static_cast<std::uint32_t>(segments_.size());
    segments_.emplace_back();
  } else {
    slot = unused_segments_.back();
    unused_segments_.pop_back();
  }
  segments_[slot].range = range;
  segment_starts_.emplace(range.address, slot);
  return slot;
}

void SegmentMap::drop_segment(std::uint32_t slot) {
  segment_starts_.erase(segments_[slot].range.address);
  unused_segments_.push_back(slot);
}

void SegmentMap::reserve(const Range& range, std::uint16_t pool) {
  reserved_ += range.size;
  MapBlock fresh;
  fresh.address = range.address;
  fresh.size = range.size;
  fresh.kind = range.kind;
  fresh.pool = pool;
  const BlockIndex block = add(fresh);
  std::uint32_t slot = kNone;
  if (range.kind != SegmentKind::ordinary && range.address > 0) {
    const auto left = first_segment_in(range.address - 1, range.address);
    if (left && left->kind == range.kind) slot = segment_of(left->address);
  }
  if (slot == kNone) {
    slot = add_segment(range);
    blocks_[block].previous = kEdge | slot;
  } else {
    segments_[slot].range.size += range.size;
    link_next(segments_[slot].tail, block);
  }
  link_next(block, kEdge | slot);
  if (range.kind != SegmentKind::ordinary) {
    const auto right = segment_starts_.find(range.address + range.size);
    if (right != segment_starts_.end() && segments_[right->second].range.kind == range.kind) {
      const Segment joined = segments_[right->second];
      link_next(block, at(joined.range.address));
      link_next(joined.tail, kEdge | slot);
      segments_[slot].range.size += joined.range.size;
      drop_segment(right->second);
    }
  }
  free(block);
}

void SegmentMap::release(BlockIndex free_block) {
  const MapBlock block = blocks_[free_block];
  const std::uint32_t slot = segment_of(block.address);
  const std::uint64_t segment_end = segments_[slot].range.address + segments_[slot].range.size;
  inactive_split_ -= split_bytes(block.previous) + split_bytes(free_block) + split_bytes(block.next);
  reserved_ -= block.size;
  const BlockIndex tail = segments_[slot].tail;
  if (is_block(block.previous)) {
    segments_[slot].range.size = block.address - segments_[slot].range.address;
    link_next(block.previous, kEdge | slot);
  } else {
    drop_segment(slot);
  }
  if (is_block(block.next)) {
    const std::uint32_t after = add_segment({block.end(), segment_end - block.end(), block.kind});
    blocks_[block.next].previous = kEdge | after;
    link_next(tail, kEdge | after);
  }
  remove(free_block);
  inactive_split_ += split_bytes(block.previous) + split_bytes(block.next);
}

}  // namespace tidemark::pytorch
