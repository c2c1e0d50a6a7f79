#include "import/pytorch_snapshot/replay/pass.h"

#include <algorithm>

namespace tidemark::pytorch {

ReplayPass::ReplayPass(const DeviceTrace& trace, const ReplayStart& start, const AllocatorRules& rules,
                       SplitGuess guess, std::span<const SizeCorrection> corrections, ReplaySink* sink)
    : trace_(trace), start_(start), rules_(rules), guess_(guess), corrections_(corrections), sink_(sink) {
  const auto is_expandable = [](const StartSegment& segment) { return segment.range.kind == SegmentKind::expandable; };
  const auto expandable = std::count_if(start.segments.begin(), start.segments.end(), is_expandable);
  const bool both = expandable != 0 && static_cast<std::size_t>(expandable) != start.segments.size();
  if (both ? rules.expandable_segments() : expandable != 0) latest_kind_ = SegmentKind::expandable;
}

void ReplayPass::run() {
  begin();
  entry_ = 0;
  for (const TraceEntry& entry : trace_.entries) {
    if (sink_ != nullptr) check_clock(entry);
    switch (entry.action) {
      case Action::allocate:
        allocate(entry);
        break;
      case Action::free_requested:
        request_free(entry);
        break;
      case Action::free_completed:
        complete_free(entry);
        break;
      case Action::segment_alloc:
        reserve(entry, SegmentKind::ordinary);
        break;
      case Action::segment_map:
        reserve(entry, SegmentKind::expandable);
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        release(entry);
        break;
      case Action::out_of_memory:
        out_of_memory(entry);
        break;
      case Action::snapshot:
      case Action::user_defined:
        mark(entry);
        break;
      case Action::annotate:
        annotate(entry);
        break;
      case Action::unknown:
        break;
    }
    ++entry_;
  }
  summary_.end = totals_;
}

void ReplayPass::begin() {
  ReplayQuality& quality = summary_.quality;
  for (const StartSegment& segment : start_.segments) {
    ReplayMoment when = moment();
    when.stack = segment.stack;
    add_segment({segment.range.address, segment.range.size, segment.range.kind, segment.stream, segment.pool}, when);
  }
  learned_.settled.resize(start_.blocks.size());
  std::uint32_t next = 0;
  for (const StartSegment& segment : start_.segments) {
    const std::uint64_t end = segment.range.address + segment.range.size;
    BlockIndex rest = map_.at(segment.range.address);
    for (; next < start_.blocks.size() && start_.blocks[next].address < end; ++next) rest = begin_block(next, rest);
  }
  quality.initial_segments = start_.segments.size();
  quality.initial_blocks = start_.blocks.size();
  summary_.start = totals_;
  summary_.peak = totals_;
}

/// Takes an initial block out of the free block that reaches from the one before it to the segment's end; returns what
/// is left behind it.
BlockIndex ReplayPass::begin_block(std::uint32_t index, BlockIndex rest) {
  const StartBlock& block = start_.blocks[index];
  if (map_[rest].address < block.address) rest = map_.split_free(rest, block.address - map_[rest].address);
  map_.take(rest, std::min(block.size, map_[rest].size));
  enter(rest, block.requested);
  map_[rest].initial = true;
  map_[rest].origin = index;
  if (block.pending) {
    map_[rest].use = BlockUse::pending;
    totals_.allocated -= map_[rest].size;
  }
  unsettled_ += block.slack != 0;
  summary_.quality.initial_bytes += map_[rest].size;
  if (sink_ != nullptr) {
    ReplayMoment when = moment();
    when.stack = block.stack;
    const MapBlock& now = map_[rest];
    sink_->block_allocated({now.id, now.address, now.size, now.requested, block.stream, now.pool, block.pending}, when,
                           totals_);
  }
  return map_[rest].next;
}

void ReplayPass::check_clock(const TraceEntry& entry) {
  if (entry_ == 0) return;
  const std::int64_t before = trace_.entries[entry_ - 1].time_us;
  if (entry.time_us >= before) return;
  const auto step = static_cast<std::uint64_t>(before) - static_cast<std::uint64_t>(entry.time_us);
  ++summary_.quality.clock_steps_back;
  summary_.quality.largest_step_back_us = std::max(summary_.quality.largest_step_back_us, step);
}

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
  map_.take(block, block_size(map_[block], rounded));
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
  sink_->block_allocated({now.id, now.address, now.size, now.requested, entry.stream, pool, false}, moment(), totals_);
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
  // Nearly always the block of the entry before. (A block that is gone is not pending, whatever took its index.)
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
  if (sink_ != nullptr) sink_->free_requested(map_[block].id, moment(implied), totals_);
}

void ReplayPass::complete(BlockIndex block, bool implied) {
  const MapBlock& gone = map_[block];
  const std::uint32_t id = gone.id;
  totals_.active -= gone.size;
  totals_.requested -= gone.requested;
  if (gone.initial && start_.blocks[gone.origin].slack != 0 && !learned_.settled[gone.origin]) --unsettled_;
  --blocks_in_use_;
  map_.give_back(block);
  totals_.inactive_split = map_.inactive_split();
  summary_.peak.inactive_split = std::max(summary_.peak.inactive_split, totals_.inactive_split);
  if (sink_ != nullptr) sink_->free_completed(id, moment(implied), totals_);
}

void ReplayPass::out_of_memory(const TraceEntry& entry) {
  if (sink_ == nullptr) return;
  sink_->out_of_memory({entry.size, entry.address, entry.stream, entry.pool}, moment(), totals_);
}

void ReplayPass::mark(const TraceEntry& entry) {
  // A snapshot entry holds the bytes of all active blocks (DeviceCachingAllocator::snapshot), or of those of one pool,
  // which only the newest files name.
  const bool of_all = entry.action == Action::snapshot && !start_.has_private;
  summary_.quality.snapshot_mismatches += of_all && entry.size != totals_.active;
  if (sink_ != nullptr) sink_->marked(entry.action, moment(), totals_);
}

void ReplayPass::annotate(const TraceEntry& entry) {
  const BlockIndex block = map_.at(entry.address);
  if (sink_ == nullptr || block == SegmentMap::kNone || map_[block].use == BlockUse::free) return;
  sink_->annotated(map_[block].id, moment(), totals_);
}

ReplayMoment ReplayPass::moment(bool implied) const {
  if (entry_ == ReplayMoment::kBeforeTrace) {
    return {entry_, trace_.entries.empty() ? 0 : trace_.entries.front().time_us, StackId{}, implied};
  }
  return {entry_, trace_.entries[entry_].time_us, trace_.entries[entry_].stack, implied};
}

}  // namespace tidemark::pytorch
