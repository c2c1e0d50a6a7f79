// The entries of a trace that allocate and free blocks.
#include <algorithm>

#include "import/pytorch_snapshot/replay/pass.h"

namespace tidemark::pytorch {

bool ReplayPass::expandable_rules(const MapBlock& block) const {
  if (!start_.mixed || block.kind == SegmentKind::expandable) return block.kind == SegmentKind::expandable;
  switch (guess_) {
    case SplitGuess::by_setting:
      return rules_.expandable_segments();
    case SplitGuess::by_latest:
      return latest_kind_ == SegmentKind::expandable;
    case SplitGuess::by_kind:
      break;
  }
  return false;
}

std::uint64_t ReplayPass::block_size(const MapBlock& free_block, std::uint64_t rounded) {
  while (next_correction_ < corrections_.size() && corrections_[next_correction_].entry < entry_) ++next_correction_;
  if (next_correction_ < corrections_.size() && corrections_[next_correction_].entry == entry_) {
    return std::min(corrections_[next_correction_++].size, free_block.size);
  }
  if (rounded >= free_block.size) return free_block.size;
  if (start_.never_splits(free_block.pool)) return free_block.size;
  const bool split = rules_.should_split(free_block.size, rounded, expandable_rules(free_block));
  if (start_.mixed && free_block.kind == SegmentKind::ordinary &&
      split != rules_.should_split(free_block.size, rounded, !expandable_rules(free_block))) {
    ++summary_.quality.guessed_splits;
    summary_.quality.guessed_bytes += free_block.size - rounded;
  }
  return split ? rounded : free_block.size;
}

void ReplayPass::allocate(const TraceEntry& entry) {
  const std::uint64_t rounded = rules_.round_size(entry.size);
  BlockIndex block = map_.at(entry.address);
  if (block == SegmentMap::kNone || map_[block].use != BlockUse::free || map_[block].size < rounded) {
    block = make_room(entry.address, entry.size, rounded);
    if (block == SegmentMap::kNone) return;
  }
  map_.allocate(block, block_size(map_[block], rounded));
  enter(block, entry.size);
  map_[block].initial = false;
  map_[block].origin = entry_;
  raise_peaks();
  if (unsettled_ != 0 && SegmentMap::is_block(map_[block].previous)) {
    const MapBlock& previous = map_[map_[block].previous];
    if (previous.initial && start_.blocks[previous.origin].slack != 0 && !learned_.settled[previous.origin]) {
      learned_.settled[previous.origin] = true;
      --unsettled_;
    }
  }
  if (sink_ == nullptr) return;
  const MapBlock& now = map_[block];
  const std::uint16_t pool = entry.pool != 0 ? entry.pool : now.pool;
  sink_->block_allocated({now.id, now.address, now.size, now.requested, entry.stream, pool, false}, position(),
                         totals_);
}

/// Counts a block that was just taken; the caller notes its origin.
void ReplayPass::enter(BlockIndex block, std::uint64_t requested) {
  MapBlock& now = map_[block];
  now.requested = std::min(requested, now.size);
  now.id = next_id_++;
  ++blocks_in_use_;
  totals_.allocated += now.size;
  totals_.active += now.size;
  totals_.requested += now.requested;
  totals_.inactive_split = map_.inactive_split();
}

void ReplayPass::raise_peaks() {
  MemoryTotals& peak = summary_.peak;
  peak.allocated = std::max(peak.allocated, totals_.allocated);
  peak.active = std::max(peak.active, totals_.active);
  peak.reserved = std::max(peak.reserved, totals_.reserved);
  peak.requested = std::max(peak.requested, totals_.requested);
  peak.inactive_split = std::max(peak.inactive_split, totals_.inactive_split);
}

void ReplayPass::request_free(const TraceEntry& entry) {
  const BlockIndex block = map_.at(entry.address);
  if (block == SegmentMap::kNone || map_[block].use == BlockUse::free) {
    ++summary_.quality.unknown_frees;
    unknown_request_ = true;
    unknown_address_ = entry.address;
    return;
  }
  if (map_[block].use == BlockUse::pending) {
    ++summary_.quality.double_frees;
    return;
  }
  summary_.quality.free_size_mismatches += std::min(entry.size, map_[block].size) != map_[block].requested;
  request(block, false);
  last_requested_ = block;
  if (!start_.recorded.completions) complete(block, true);
}

void ReplayPass::complete_free(const TraceEntry& entry) {
  // Nearly always the block of the entry before. (A block that no longer exists is not pending, even if its index was
  // reused.)
  BlockIndex block = last_requested_;
  if (block == SegmentMap::kNone || map_[block].use != BlockUse::pending || map_[block].address != entry.address) {
    block = map_.at(entry.address);
  }
  if (block == SegmentMap::kNone || map_[block].use == BlockUse::free) {
    const bool counted = unknown_request_ && unknown_address_ == entry.address;
    unknown_request_ = false;
    summary_.quality.unknown_frees += !counted;
    return;
  }
  if (map_[block].use == BlockUse::allocated) {
    summary_.quality.implied_requests += start_.recorded.requests;
    request(block, true);
  }
  complete(block, false);
}

void ReplayPass::request(BlockIndex block, bool implied) {
  map_[block].use = BlockUse::pending;
  totals_.allocated -= map_[block].size;
  if (sink_ != nullptr) sink_->free_requested(map_[block].id, position(implied), totals_);
}

void ReplayPass::complete(BlockIndex block, bool implied) {
  const MapBlock& gone = map_[block];
  const std::uint32_t id = gone.id;
  totals_.active -= gone.size;
  totals_.requested -= gone.requested;
  if (gone.initial && start_.blocks[gone.origin].slack != 0 && !learned_.settled[gone.origin]) --unsettled_;
  --blocks_in_use_;
  map_.free(block);
  totals_.inactive_split = map_.inactive_split();
  summary_.peak.inactive_split = std::max(summary_.peak.inactive_split, totals_.inactive_split);
  if (sink_ != nullptr) sink_->free_completed(id, position(implied), totals_);
}

}  // namespace tidemark::pytorch
