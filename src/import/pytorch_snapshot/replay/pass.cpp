#include "import/pytorch_snapshot/replay/pass.h"

#include <algorithm>
#include <limits>
#include <optional>

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
  in_trace_ = true;
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
    TracePosition when = position();
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
  quality.initial_recorded_blocks = static_cast<std::uint64_t>(std::count_if(
      start_.blocks.begin(), start_.blocks.end(), [](const StartBlock& block) { return block.stack.valid(); }));
  summary_.start = totals_;
  summary_.peak = totals_;
}

/// Takes an initial block out of the free block that reaches from the one before it to the segment's end; returns the
/// remaining free block after it.
BlockIndex ReplayPass::begin_block(std::uint32_t index, BlockIndex rest) {
  const StartBlock& block = start_.blocks[index];
  if (map_[rest].address < block.address) rest = map_.split_free(rest, block.address - map_[rest].address);
  map_.allocate(rest, std::min(block.size, map_[rest].size));
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
    TracePosition when = position();
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

void ReplayPass::reserve(const TraceEntry& entry, SegmentKind kind) {
  const std::uint16_t known_pool = reserved_pool();
  if (entry.size == 0 || entry.address > std::numeric_limits<std::uint64_t>::max() - entry.size) {
    ++summary_.quality.impossible_ranges;
    return;
  }
  if (map_.first_segment_in(entry.address, entry.address + entry.size)) {
    ++summary_.quality.overlapping_segments;
    release_range(entry.address, entry.address + entry.size, true);
  }
  latest_kind_ = kind;
  const std::uint16_t pool = entry.pool != 0 ? entry.pool : known_pool;
  add_segment({entry.address, entry.size, kind, entry.stream, pool}, position());
}

void ReplayPass::add_segment(const ReplaySegment& segment, const TracePosition& when) {
  map_.reserve({segment.address, segment.size, segment.kind}, segment.pool);
  totals_.reserved = map_.reserved();
  raise_peaks();
  if (sink_ != nullptr) sink_->segment_reserved(segment, when, totals_);
}

std::uint16_t ReplayPass::reserved_pool() {
  const auto& pools = start_.pools;
  if (next_pool_ < pools.size() && pools[next_pool_].entry == entry_) return pools[next_pool_++].pool;
  return 0;
}

void ReplayPass::release(const TraceEntry& entry) {
  if (entry.size == 0 || entry.address > std::numeric_limits<std::uint64_t>::max() - entry.size) {
    ++summary_.quality.impossible_ranges;
    return;
  }
  const BlockIndex block = map_.at(entry.address);
  if (block != SegmentMap::kNone && map_[block].use == BlockUse::free && map_[block].size == entry.size) {
    drop_free(block, false);
  } else if (map_.first_segment_in(entry.address, entry.address + entry.size)) {
    release_range(entry.address, entry.address + entry.size, false);
  } else {
    ++summary_.quality.unknown_segments;
  }
}

/// Takes a free block out of its segment.
void ReplayPass::drop_free(BlockIndex block, bool implied) {
  const MapBlock gone = map_[block];
  map_.release(block);
  totals_.reserved = map_.reserved();
  totals_.inactive_split = map_.inactive_split();
  raise_peaks();
  if (sink_ == nullptr) return;
  const std::uint16_t stream = trace_.entries[entry_].stream;
  sink_->segment_released({gone.address, gone.size, gone.kind, stream, gone.pool}, position(implied), totals_);
}

void ReplayPass::out_of_memory(const TraceEntry& entry) {
  if (sink_ == nullptr) return;
  const auto device_free = entry.has_address ? std::optional(entry.address) : std::nullopt;
  sink_->out_of_memory({entry.size, device_free, entry.stream, entry.pool}, position(), totals_);
}

void ReplayPass::mark(const TraceEntry& entry) {
  // A snapshot entry contains the bytes of all active blocks (DeviceCachingAllocator::snapshot), or of one pool's
  // blocks; only the newest files name the pool.
  const bool of_all = entry.action == Action::snapshot && !start_.has_private;
  summary_.quality.snapshot_mismatches += of_all && entry.size != totals_.active;
  if (sink_ != nullptr) sink_->marked(entry.action, position(), totals_);
}

void ReplayPass::annotate(const TraceEntry& entry) {
  const BlockIndex block = map_.at(entry.address);
  if (sink_ == nullptr || block == SegmentMap::kNone || map_[block].use == BlockUse::free) return;
  sink_->annotated(map_[block].id, position(), totals_);
}

TracePosition ReplayPass::position(bool implied) const {
  if (!in_trace_) {
    return {std::nullopt, trace_.entries.empty() ? 0 : trace_.entries.front().time_us, StackId{}, implied};
  }
  return {entry_, trace_.entries[entry_].time_us, trace_.entries[entry_].stack, implied};
}

}  // namespace tidemark::pytorch
