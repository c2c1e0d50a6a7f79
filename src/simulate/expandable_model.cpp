// Expandable segments of the model: class ExpandableSegment and try_allocate_expandable_block().
#include <algorithm>

#include "simulate/allocator_model.h"

namespace tidemark {
namespace {

// What an expandable segment has of addresses: more than any GPU has memory.
constexpr std::uint64_t kSegmentAddresses = std::uint64_t{1} << 46;

}  // namespace

// What best fit compares: the block and the unmapped memory behind it.
std::uint64_t AllocatorModel::room_of(Handle block) const {
  const Handle behind = blocks_[block].behind;
  const bool grows = behind != kNone && blocks_[behind].state == State::unmapped;
  return blocks_[block].size + (grows ? blocks_[behind].size : 0);
}

// The lowest place where free and unmapped blocks side by side are large enough.
AllocatorModel::Handle AllocatorModel::find_expandable_block(const Search& search) {
  for (const auto& [address, unmapped] : search.pool->unmapped) {
    Handle first = unmapped;
    const Handle before = blocks_[first].before;
    if (before != kNone && blocks_[before].state == State::free) first = before;
    std::uint64_t room = 0;
    for (Handle next = first; room < search.rounded && next != kNone && blocks_[next].state != State::in_use;
         next = blocks_[next].behind) {
      room += blocks_[next].size;
    }
    if (room >= search.rounded) return first;
  }
  Block block;
  block.address = next_expandable_;
  block.size = kSegmentAddresses;
  block.pool = search.pool;
  block.key = search.key;
  block.state = State::unmapped;
  block.expandable = true;
  next_expandable_ += kSegmentAddresses;
  const Handle handle = new_block(block);
  search.pool->unmapped[block.address] = handle;
  return handle;
}

AllocatorModel::Handle AllocatorModel::allocate_expandable(const Search& search) {
  if (search.rounded > kSegmentAddresses) return kNone;
  Handle block = find_expandable_block(search);
  if (blocks_[block].state == State::unmapped) {
    block = map_block(block, std::min(blocks_[block].size, search.rounded));
    if (block == kNone) return kNone;
  }
  while (blocks_[block].size < search.rounded) {
    const Handle behind = blocks_[block].behind;
    block = map_block(behind, std::min(blocks_[behind].size, search.rounded - blocks_[block].size));
    if (block == kNone) return kNone;
  }
  erase_free(block);
  return block;
}

// Maps the first `bytes` of an unmapped block, in whole handles. The free block that they are now part of; none where
// the driver has no memory.
AllocatorModel::Handle AllocatorModel::map_block(Handle block, std::uint64_t bytes) {
  const std::uint64_t handle = pytorch::handle_size(std::get<pytorch::BlockPool>(blocks_[block].key));
  const std::uint64_t mapped = std::min((bytes + handle - 1) / handle * handle, blocks_[block].size);
  if (!driver_has(mapped)) return kNone;
  reserve(mapped);
  Pool& pool = *blocks_[block].pool;
  pool.unmapped.erase(blocks_[block].address);
  if (mapped < blocks_[block].size) {
    const Handle rest = split(block, mapped);
    pool.unmapped[blocks_[rest].address] = rest;
  }
  blocks_[block].state = State::free;
  if (const Handle behind = blocks_[block].behind; behind != kNone && blocks_[behind].state == State::free) {
    erase_free(behind);
    merge_behind(block);
  }
  if (const Handle before = blocks_[block].before; before != kNone && blocks_[before].state == State::free) {
    erase_free(before);
    merge_behind(before);
    block = before;
  }
  insert_free(block);
  return block;
}

// Gives the handles that lie wholly in a free block back to the driver.
void AllocatorModel::unmap_block(Handle block) {
  const std::uint64_t handle = pytorch::handle_size(std::get<pytorch::BlockPool>(blocks_[block].key));
  // Segments begin at a multiple of kSegmentAddresses, which handles of 20 MiB do not divide: offsets count.
  const std::uint64_t start = blocks_[block].address / kSegmentAddresses * kSegmentAddresses;
  const std::uint64_t offset = blocks_[block].address - start;
  const std::uint64_t size = blocks_[block].size;
  const std::uint64_t begin = (offset + handle - 1) / handle * handle;
  const std::uint64_t end = (offset + size) / handle * handle;
  if (end <= begin) return;
  erase_free(block);
  Handle gone = block;
  if (begin > offset) {
    gone = split(block, begin - offset);
    insert_free(block);
  }
  if (offset + size > end) insert_free(split(gone, end - begin));
  reserved_ -= end - begin;
  blocks_[gone].state = State::unmapped;
  Pool& pool = *blocks_[gone].pool;
  if (const Handle behind = blocks_[gone].behind; behind != kNone && blocks_[behind].state == State::unmapped) {
    pool.unmapped.erase(blocks_[behind].address);
    merge_behind(gone);
  }
  if (const Handle before = blocks_[gone].before; before != kNone && blocks_[before].state == State::unmapped) {
    pool.unmapped.erase(blocks_[before].address);
    merge_behind(before);
    gone = before;
  }
  pool.unmapped[blocks_[gone].address] = gone;
}

}  // namespace tidemark
