// Expandable segments: one for each stream, pool and size class, mapped and unmapped page by page.
#include <algorithm>
#include <iterator>

#include "unit/import/allocator_model.h"

namespace tidemark::pytorch::testing {
namespace {

constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 40;

}  // namespace

/// Maps missing memory for `size` bytes at the lowest address where they fit.
AllocatorModel::Blocks::iterator AllocatorModel::expand(std::uint64_t size, const Segment& wanted) {
  auto block = find_room(size, wanted);
  if (block == blocks_.end()) {
    Segment segment = wanted;
    segment.address = (segments_.size() + 1) << 44;
    segment.size = kAddressSpace;
    segments_.push_back(segment);
    block = blocks_.emplace(segment.address, Block{segment.size, 0, segments_.size() - 1, kUnmapped}).first;
  }
  if (block->second.state == kUnmapped) block = map(block, size);
  while (block->second.size < size) block = map(after(block), size - block->second.size);
  return block;
}

/// The first block, free or unmapped, that begins enough bytes without use; the end: there is none.
AllocatorModel::Blocks::iterator AllocatorModel::find_room(std::uint64_t size, const Segment& wanted) {
  const auto unused = [&](Blocks::iterator block) {
    return block != blocks_.end() && (block->second.state == BlockState::inactive || block->second.state == kUnmapped);
  };
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (block->second.state != kUnmapped || !serves(block->second, wanted)) continue;
    const auto first = unused(before(block)) ? before(block) : block;
    std::uint64_t room = 0;
    for (auto next = first; unused(next) && room < size; next = after(next)) room += next->second.size;
    if (room >= size) return first;
  }
  return blocks_.end();
}

/// Maps the pages of the first `size` bytes, or all; returns the free block that they become part of.
AllocatorModel::Blocks::iterator AllocatorModel::map(Blocks::iterator unmapped, std::uint64_t size) {
  const Segment segment = segments_[unmapped->second.segment];
  const std::uint64_t page = segment.small ? std::uint64_t{2} << 20 : settings_.large_segment;
  const std::uint64_t address = unmapped->first;
  const std::uint64_t mapped = (std::min(size, unmapped->second.size) + page - 1) / page * page;
  split(unmapped, mapped);
  unmapped->second.state = BlockState::inactive;
  const auto block = merge(unmapped);
  note(Action::segment_map, address, mapped, segment.stream, segment.pool);
  return block;
}

/// Unmaps the pages that are all free.
void AllocatorModel::unmap(Blocks::iterator block) {
  const Segment segment = segments_[block->second.segment];
  const std::uint64_t page = segment.small ? std::uint64_t{2} << 20 : settings_.large_segment;
  const std::uint64_t offset = block->first - segment.address;
  const std::uint64_t begin = (offset + page - 1) / page * page;
  const std::uint64_t end = (offset + block->second.size) / page * page;
  if (begin >= end) return;
  if (begin > offset) {
    split(block, begin - offset);
    block = std::next(block);
  }
  split(block, end - begin);
  block->second.state = kUnmapped;
  merge(block);
  note(Action::segment_unmap, segment.address + begin, end - begin, segment.stream, segment.pool);
}

}  // namespace tidemark::pytorch::testing
