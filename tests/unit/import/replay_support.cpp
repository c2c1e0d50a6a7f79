#include "unit/import/replay_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace tidemark::pytorch::testing {

Script::Script() {
  snapshot.streams = {0};
  snapshot.pools = {{0, 0}};
  snapshot.traces.emplace_back();
  snapshot.settings.emplace();
}

Script& Script::add(Action action, std::uint64_t address, std::uint64_t size) {
  TraceEntry entry;
  entry.action = action;
  entry.address = address;
  entry.size = size;
  entry.time_us = static_cast<std::int64_t>(trace().entries.size());
  trace().entries.push_back(entry);
  return *this;
}

Script& Script::final_segment(std::uint64_t address, std::uint64_t size, bool expandable, std::uint16_t pool) {
  SnapshotSegment segment;
  segment.address = address;
  segment.total_size = size;
  segment.expandable = expandable;
  segment.pool = pool;
  snapshot.segments.push_back(segment);
  return *this;
}

Script& Script::block(std::uint64_t size, std::uint64_t requested, BlockState state) {
  SnapshotSegment& segment = snapshot.segments.back();
  SnapshotBlock block;
  block.address = segment.blocks.empty() ? segment.address : segment.blocks.back().address + segment.blocks.back().size;
  block.size = size;
  block.requested_size = requested;
  block.state = requested == 0 ? BlockState::inactive : state;
  segment.blocks.push_back(block);
  return *this;
}

std::map<std::uint64_t, CheckingSink::Range>::iterator CheckingSink::range_of(std::uint64_t address) {
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return ranges_.end();
  --range;
  return address < range->second.end ? range : ranges_.end();
}

/// An ordinary segment's free bytes count as split while any block in it is in use.
void CheckingSink::unsplit(const Range& range, std::uint64_t start, bool add) {
  if (range.kind != SegmentKind::ordinary || range.used == 0) return;
  const std::uint64_t bytes = range.end - start - range.used;
  mine_.inactive_split += add ? bytes : 0 - bytes;
}

void CheckingSink::segment_reserved(const ReplaySegment& segment, const TracePosition& when,
                                    const MemoryTotals& totals) {
  const auto next = ranges_.lower_bound(segment.address);
  if (next != ranges_.end()) {
    EXPECT_LE(segment.address + segment.size, next->first) << "segments overlap";
  }
  if (next != ranges_.begin()) {
    EXPECT_LE(std::prev(next)->second.end, segment.address) << "segments overlap";
  }
  mine_.reserved += segment.size;
  reserved.push_back(segment);
  auto range = ranges_.emplace(segment.address, Range{segment.address + segment.size, segment.kind, 0}).first;
  if (segment.kind != SegmentKind::ordinary) {
    const auto joined = [&](auto left, auto right) {
      if (left->second.end != right->first || left->second.kind != right->second.kind) return left;
      left->second.end = right->second.end;
      left->second.used += right->second.used;
      ranges_.erase(right);
      return left;
    };
    if (std::next(range) != ranges_.end()) joined(range, std::next(range));
    if (range != ranges_.begin()) joined(std::prev(range), range);
  }
  check(when, totals);
}

void CheckingSink::segment_released(const ReplaySegment& segment, const TracePosition& when,
                                    const MemoryTotals& totals) {
  const auto first = live.lower_bound(segment.address);
  EXPECT_TRUE(first == live.end() || first->first >= segment.address + segment.size) << "released with blocks in it";
  const auto range = range_of(segment.address);
  ASSERT_NE(range, ranges_.end());
  const std::uint64_t start = range->first;
  const Range whole = range->second;
  ASSERT_LE(segment.address + segment.size, whole.end);
  unsplit(whole, start, false);
  ranges_.erase(range);
  const auto keep = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    Range piece{end, whole.kind, 0};
    for (auto it = live.lower_bound(begin); it != live.end() && it->first < end; ++it) {
      piece.used += blocks[it->second].block.size;
    }
    ranges_.emplace(begin, piece);
    unsplit(piece, begin, true);
  };
  keep(start, segment.address);
  keep(segment.address + segment.size, whole.end);
  mine_.reserved -= segment.size;
  released.push_back(segment);
  check(when, totals);
}

void CheckingSink::block_allocated(const ReplayBlock& block, const TracePosition& when, const MemoryTotals& totals) {
  EXPECT_EQ(block.id, blocks.size());
  EXPECT_GT(block.size, 0U);
  EXPECT_LE(block.requested, block.size);
  const auto range = range_of(block.address);
  ASSERT_NE(range, ranges_.end()) << "outside every segment";
  EXPECT_LE(block.address + block.size, range->second.end) << "past the segment's end";
  const auto next = live.lower_bound(block.address);
  if (next != live.end()) {
    EXPECT_LE(block.address + block.size, next->first) << "blocks overlap";
  }
  if (next != live.begin()) {
    const ReplayBlock& before = blocks[std::prev(next)->second].block;
    EXPECT_LE(before.address + before.size, block.address) << "blocks overlap";
  }
  live[block.address] = block.id;
  blocks.push_back({block, when, block.pending});
  unsplit(range->second, range->first, false);
  range->second.used += block.size;
  unsplit(range->second, range->first, true);
  if (!block.pending) mine_.allocated += block.size;
  mine_.active += block.size;
  mine_.requested += block.requested;
  check(when, totals);
}

void CheckingSink::free_requested(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) {
  ASSERT_LT(block, blocks.size());
  EXPECT_FALSE(blocks[block].pending);
  EXPECT_EQ(live.count(blocks[block].block.address), 1U);
  blocks[block].pending = true;
  mine_.allocated -= blocks[block].block.size;
  check(when, totals);
}

void CheckingSink::free_completed(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) {
  ASSERT_LT(block, blocks.size());
  EXPECT_TRUE(blocks[block].pending);
  const ReplayBlock& gone = blocks[block].block;
  const auto found = live.find(gone.address);
  ASSERT_NE(found, live.end());
  EXPECT_EQ(found->second, block);
  live.erase(found);
  const auto range = range_of(gone.address);
  unsplit(range->second, range->first, false);
  range->second.used -= gone.size;
  unsplit(range->second, range->first, true);
  mine_.active -= gone.size;
  mine_.requested -= gone.requested;
  check(when, totals);
}

void CheckingSink::out_of_memory(const ReplayOutOfMemory& event, const TracePosition& when,
                                 const MemoryTotals& totals) {
  ooms.push_back(event);
  check(when, totals);
}

void CheckingSink::annotated(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) {
  EXPECT_LT(block, blocks.size());
  annotated_blocks.push_back(block);
  check(when, totals);
}

void CheckingSink::marked(Action action, const TracePosition& when, const MemoryTotals& totals) {
  marks.push_back(action);
  check(when, totals);
}

void CheckingSink::check(const TracePosition& when, const MemoryTotals& totals) {
  const std::int64_t entry = when.entry ? std::int64_t{*when.entry} : -1;
  if (!by_entry_.empty()) {
    EXPECT_LE(by_entry_.rbegin()->first, entry) << "calls out of order";
  }
  EXPECT_EQ(totals, mine_) << "after entry " << entry << ": allocated " << totals.allocated << "/" << mine_.allocated
                           << ", active " << totals.active << "/" << mine_.active << ", reserved " << totals.reserved
                           << "/" << mine_.reserved << ", requested " << totals.requested << "/" << mine_.requested
                           << ", inactive split " << totals.inactive_split << "/" << mine_.inactive_split;
  by_entry_[entry] = totals;
  implied += when.implied;
  if (entry < 0) {
    peak_ = totals;
    return;
  }
  peak_.allocated = std::max(peak_.allocated, totals.allocated);
  peak_.active = std::max(peak_.active, totals.active);
  peak_.reserved = std::max(peak_.reserved, totals.reserved);
  peak_.requested = std::max(peak_.requested, totals.requested);
  peak_.inactive_split = std::max(peak_.inactive_split, totals.inactive_split);
}

MemoryTotals CheckingSink::after(std::optional<std::uint32_t> entry) const {
  const auto next = by_entry_.upper_bound(entry ? std::int64_t{*entry} : -1);
  return next == by_entry_.begin() ? MemoryTotals{} : std::prev(next)->second;
}

ReplaySummary replay_checked(const Snapshot& snapshot, CheckingSink& sink, std::int32_t device) {
  const ReplaySummary summary = replay(snapshot, device, sink);
  EXPECT_EQ(summary.start, sink.after(std::nullopt));
  EXPECT_EQ(summary.end, sink.after(std::numeric_limits<std::uint32_t>::max()));
  EXPECT_EQ(summary.peak, sink.peak());
  return summary;
}

std::vector<std::string> names_of(const ReplayQuality& quality) {
  std::vector<std::string> names;
  for (const QualityIssue& issue : quality.issues()) names.emplace_back(name_of(issue.id));
  return names;
}

}  // namespace tidemark::pytorch::testing
