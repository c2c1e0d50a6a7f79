// Repairs contradictions between the trace and the map by implied events, each counted. Takes logarithmic time for each
// entry.
#include <algorithm>
#include <limits>

#include "import/pytorch_snapshot/replay/pass.h"

namespace tidemark::pytorch {
namespace {

constexpr std::uint64_t kEndOfMemory = std::numeric_limits<std::uint64_t>::max();

}  // namespace

/// The free block that starts at `address`, large enough if possible, after removing overlapping blocks. kNone: the
/// entry is impossible.
BlockIndex ReplayPass::make_room(std::uint64_t address, std::uint64_t requested, std::uint64_t rounded) {
  const bool survey = sink_ == nullptr;
  const std::uint64_t least = std::min(round_to_min_block(requested), rounded);
  BlockIndex block = map_.containing(address);
  if (block != SegmentMap::kNone && map_[block].use != BlockUse::free) {
    const MapBlock& owner = map_[block];
    const std::uint64_t before = address - owner.address;
    if (survey && before != 0 && before >= round_to_min_block(owner.requested)) {
      learn(block, before);  // it was split, against the known rules
    } else {
      retire(block);
    }
    block = map_.containing(address);
  }
  if (block == SegmentMap::kNone) {
    block = reserve_implied(address, rounded);
    if (block == SegmentMap::kNone) return block;
  }
  // Before any split, so that the free block is whole in the totals that the sink receives meanwhile.
  while (map_[block].end() - address < least) {
    const BlockIndex next = map_[block].next;
    if (SegmentMap::is_block(next)) {
      retire(next);
    } else if (map_[block].kind != SegmentKind::implied ||
               reserve_implied(map_[block].end(), least - (map_[block].end() - address)) == SegmentMap::kNone) {
      break;
    }
  }
  const std::uint64_t gap = address - map_[block].address;
  if (gap != 0) {
    // Blocks are cut from the front of free ones, so the block before must be larger than taken.
    const BlockIndex previous = map_[block].previous;
    if (survey && SegmentMap::is_block(previous) && may_have_grown(map_[previous], gap)) {
      learn(previous, map_[previous].size + gap);
      block = map_.at(address);
    } else {
      ++summary_.quality.unexplained_gaps;
      block = map_.split_free(block, gap);
    }
  }
  summary_.quality.truncated_blocks += map_[block].size < least;
  return block;
}

/// Reserves up to `size` bytes at `address`, which no segment contains; returns the free block that contains it, or
/// kNone if there is no room.
BlockIndex ReplayPass::reserve_implied(std::uint64_t address, std::uint64_t size) {
  if (address > kEndOfMemory - size) {
    ++summary_.quality.impossible_ranges;
    return SegmentMap::kNone;
  }
  if (const auto next = map_.first_segment_in(address, address + size)) {
    if (next->address <= address) return SegmentMap::kNone;
    size = next->address - address;
  }
  ++summary_.quality.missing_segments;
  const TraceEntry& entry = trace_.entries[entry_];
  add_segment({address, size, SegmentKind::implied, entry.stream, entry.pool}, position(true));
  return map_.containing(address);
}

/// Frees a block that must have been freed before this entry.
void ReplayPass::retire(BlockIndex block) {
  if (map_[block].use == BlockUse::allocated) {
    ++summary_.quality.overlapping_blocks;
    request(block, true);
  } else {
    ++summary_.quality.implied_completions;
  }
  complete(block, true);
}

/// Releases all memory in [begin, end), which contains some, with its blocks.
void ReplayPass::release_range(std::uint64_t begin, std::uint64_t end, bool implied) {
  bool in_use = false;
  while (const auto segment = map_.first_segment_in(begin, end)) {
    const std::uint64_t piece_begin = std::max(begin, segment->address);
    const std::uint64_t piece_end = std::min(end, segment->address + segment->size);
    BlockIndex block = map_.containing(piece_begin);
    const auto clear = [&](BlockIndex used) {
      in_use = true;
      if (map_[used].use == BlockUse::allocated) request(used, true);
      complete(used, true);
    };
    if (map_[block].use != BlockUse::free) {
      clear(block);
      block = map_.containing(piece_begin);
    }
    while (map_[block].end() < piece_end) clear(map_[block].next);
    if (map_[block].address < piece_begin) block = map_.split_free(block, piece_begin - map_[block].address);
    if (map_[block].end() > piece_end) map_.split_free(block, piece_end - map_[block].address);
    drop_free(block, implied);
  }
  summary_.quality.segments_in_use += in_use;
}

bool ReplayPass::may_have_grown(const MapBlock& block, std::uint64_t gap) const {
  if (start_.never_splits(block.pool)) return true;
  const std::uint64_t rounded = rules_.round_size(block.requested);
  const std::uint64_t limit = rules_.largest_excess(rounded, expandable_rules(block));
  const std::uint64_t excess = block.size > rounded ? block.size - rounded : 0;
  return excess <= limit && gap <= limit - excess;
}

/// Notes the true size of a block in use, and gives it that size.
void ReplayPass::learn(BlockIndex block, std::uint64_t size) {
  MapBlock& now = map_[block];
  const std::uint64_t old = now.size;
  if (now.initial) {
    learned_.initial[now.origin] = size;
    if (start_.blocks[now.origin].slack != 0 && !learned_.settled[now.origin]) {
      learned_.settled[now.origin] = true;
      --unsettled_;
    }
  } else {
    learned_.entries[now.origin] = size;
  }
  if (now.use == BlockUse::allocated) totals_.allocated += size - old;
  totals_.active += size - old;
  map_.resize(block, size);
  totals_.inactive_split = map_.inactive_split();
  raise_peaks();
}

}  // namespace tidemark::pytorch
