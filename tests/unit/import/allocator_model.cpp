#include "unit/import/allocator_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/units.h"

namespace tidemark::pytorch::testing {
namespace {

std::uint64_t up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::uint64_t AllocatorModel::round(std::uint64_t size) const {
  std::uint64_t divisions = settings_.divisions.empty() ? 0 : settings_.divisions.begin()->second;
  for (const auto& [mebibytes, value] : settings_.divisions) {
    if (size >= mebibytes * kMiB) divisions = value;
  }
  if (divisions > 1 && size > 512 * divisions) {
    std::uint64_t power = 1;
    while (power * 2 <= size) power *= 2;
    for (std::uint64_t step = 0;; ++step) {
      if (const std::uint64_t candidate = power + step * (power / divisions); candidate >= size) return candidate;
    }
  }
  return std::max<std::uint64_t>(512, up(size, 512));
}

std::optional<std::uint64_t> AllocatorModel::allocate(std::uint64_t size, std::uint16_t stream, std::uint16_t pool) {
  const std::uint64_t rounded = round(size);
  const Segment wanted{0, 0, stream, pool, rounded <= kMiB};
  auto block = find_free(rounded, wanted);
  if (block == blocks_.end()) block = reserve(rounded, wanted);
  if (block == blocks_.end() && release_oversize(rounded, wanted)) block = reserve(rounded, wanted);
  if (block == blocks_.end()) {
    empty_cache();
    block = reserve(rounded, wanted);
  }
  if (block == blocks_.end()) {
    note(Action::out_of_memory, settings_.limit - count().reserved, rounded, stream, pool);
    return std::nullopt;
  }
  const std::uint64_t rest = block->second.size - rounded;
  const bool fine = wanted.small || settings_.expandable;
  if (fine ? rest >= 512 : rounded < settings_.max_split && rest > kMiB) split(block, rounded);
  block->second.requested = size;
  block->second.state = BlockState::active_allocated;
  note(Action::allocate, block->first, size, stream, pool);
  return block->first;
}

bool AllocatorModel::serves(const Block& block, const Segment& wanted) const {
  const Segment& segment = segments_[block.segment];
  return segment.stream == wanted.stream && segment.pool == wanted.pool && segment.small == wanted.small;
}

/// The smallest free block that is large enough; of expandable ones that with the least room to grow.
AllocatorModel::Blocks::iterator AllocatorModel::find_free(std::uint64_t size, const Segment& wanted) {
  std::vector<Blocks::iterator> fitting;
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    const bool usable = block->second.state == BlockState::inactive && block->second.size >= size;
    if (usable && serves(block->second, wanted)) fitting.push_back(block);
  }
  if (fitting.empty()) return blocks_.end();
  std::stable_sort(fitting.begin(), fitting.end(), [](auto a, auto b) { return a->second.size < b->second.size; });
  const auto room = [&](Blocks::iterator block) {
    const auto next = after(block);
    const bool grows = next != blocks_.end() && next->second.state == kUnmapped;
    return block->second.size + (grows ? next->second.size : 0);
  };
  std::size_t best = 0;
  while (settings_.expandable && best + 1 < fitting.size() && room(fitting[best + 1]) < room(fitting[best])) ++best;
  const std::uint64_t found = fitting[best]->second.size;
  if (size < settings_.max_split && found >= settings_.max_split) return blocks_.end();
  if (size >= settings_.max_split && found >= size + 20 * kMiB) return blocks_.end();
  return fitting[best];
}

AllocatorModel::Blocks::iterator AllocatorModel::reserve(std::uint64_t size, const Segment& wanted) {
  const std::uint64_t fresh = wanted.small ? 2 * kMiB : size < 10 * kMiB ? settings_.large_segment : up(size, 2 * kMiB);
  if (count().reserved + fresh > settings_.limit) return blocks_.end();
  return settings_.expandable ? expand(size, wanted) : reserve_segment(fresh, wanted);
}

AllocatorModel::Blocks::iterator AllocatorModel::reserve_segment(std::uint64_t size, const Segment& wanted) {
  Segment segment = wanted;
  segment.address = driver_address(size);
  segment.size = size;
  segments_.push_back(segment);
  const auto block = blocks_.emplace(segment.address, Block{size, 0, segments_.size() - 1}).first;
  note(Action::segment_alloc, segment.address, size, segment.stream, segment.pool);
  return block;
}

std::uint64_t AllocatorModel::driver_address(std::uint64_t size) {
  for (const auto& [address, room] : holes_) {
    if (room < size) continue;
    const std::uint64_t found = address;
    if (room > size) holes_.emplace(address + size, room - size);
    holes_.erase(found);
    return found;
  }
  return std::exchange(next_address_, next_address_ + size);
}

void AllocatorModel::free(std::uint64_t address, bool in_use) {
  Block& block = blocks_.at(address);
  const Segment& segment = segments_[block.segment];
  block.state = BlockState::active_pending_free;
  note(Action::free_requested, address, block.requested, segment.stream, segment.pool);
  if (!in_use) complete(address);
}

void AllocatorModel::complete(std::uint64_t address) {
  const auto block = blocks_.find(address);
  const Segment segment = segments_[block->second.segment];
  const std::uint64_t requested = std::exchange(block->second.requested, 0);
  block->second.state = BlockState::inactive;
  merge(block);
  note(Action::free_completed, address, requested, segment.stream, segment.pool);
}

/// Splits off the part after the first `size` bytes.
void AllocatorModel::split(Blocks::iterator block, std::uint64_t size) {
  Block rest = block->second;
  rest.size -= size;
  if (rest.size == 0) return;
  block->second.size = size;
  blocks_.emplace(block->first + size, rest);
}

/// Joins neighbours in the same state.
AllocatorModel::Blocks::iterator AllocatorModel::merge(Blocks::iterator block) {
  const auto join = [&](Blocks::iterator left, Blocks::iterator right) {
    left->second.size += right->second.size;
    blocks_.erase(right);
    return left;
  };
  const auto next = after(block);
  if (next != blocks_.end() && next->second.state == block->second.state) join(block, next);
  const auto previous = before(block);
  const bool same = previous != blocks_.end() && previous->second.state == block->second.state;
  return same ? join(previous, block) : block;
}

AllocatorModel::Blocks::iterator AllocatorModel::after(Blocks::iterator block) {
  const auto next = std::next(block);
  return next != blocks_.end() && next->second.segment == block->second.segment ? next : blocks_.end();
}

AllocatorModel::Blocks::iterator AllocatorModel::before(Blocks::iterator block) {
  if (block == blocks_.begin()) return blocks_.end();
  const auto previous = std::prev(block);
  return previous->second.segment == block->second.segment ? previous : blocks_.end();
}

bool AllocatorModel::release_oversize(std::uint64_t size, const Segment& wanted) {
  if (settings_.max_split == ModelSettings::kNone || settings_.expandable) return false;
  const std::uint64_t needed = std::max(size, settings_.max_split);
  for (std::uint64_t released = 0; released < needed;) {
    auto largest = blocks_.end();
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
      const bool cached = block->second.state == BlockState::inactive && block->second.size >= settings_.max_split;
      const bool whole = block->second.size == segments_[block->second.segment].size;
      if (!cached || !whole || !serves(block->second, wanted)) continue;
      if (largest == blocks_.end() || block->second.size > largest->second.size) largest = block;
    }
    if (largest == blocks_.end()) return false;
    released += largest->second.size;
    release(largest);
  }
  return true;
}

void AllocatorModel::empty_cache() {
  for (const std::uint64_t address : blocks(BlockState::active_pending_free)) complete(address);
  for (const std::uint64_t address : blocks(BlockState::inactive)) {
    const auto block = blocks_.find(address);
    const Segment& segment = segments_[block->second.segment];
    if (segment.pool != 0) continue;
    if (settings_.expandable) {
      unmap(block);
    } else if (block->second.size == segment.size) {
      release(block);
    }
  }
}

void AllocatorModel::release(Blocks::iterator block) {
  const Segment segment = segments_[block->second.segment];
  blocks_.erase(block);
  holes_.emplace(segment.address, segment.size);
  note(Action::segment_free, segment.address, segment.size, segment.stream, segment.pool);
}

}  // namespace tidemark::pytorch::testing
