#include "import/pytorch_snapshot/replay/start.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "import/pytorch_snapshot/large_tables.h"

namespace tidemark::pytorch {
namespace {

struct Held {
  std::uint64_t size = 0;
  SegmentKind kind = SegmentKind::ordinary;
  StackId stack;
  std::uint16_t stream = 0;
  std::uint16_t pool = 0;
};

/// Reserved ranges by address, never overlapping, going back in time.
class HeldRanges {
 public:
  using Map = std::map<std::uint64_t, Held>;

  [[nodiscard]] const Map& ranges() const { return ranges_; }

  /// Adds a range, unless it is impossible or overlaps.
  void add(std::uint64_t address, const Held& held) {
    if (held.size == 0 || address > std::numeric_limits<std::uint64_t>::max() - held.size) return;
    const auto after = first_in(address);
    if (after != ranges_.end() && after->first < address + held.size) return;
    ranges_.emplace(address, held);
  }

  /// Undoes an ordinary allocation; returns its pool.
  std::uint16_t remove_whole(std::uint64_t address) {
    const auto found = ranges_.find(address);
    if (found == ranges_.end()) return 0;
    const std::uint16_t pool = found->second.pool;
    ranges_.erase(found);
    return pool;
  }

  /// Undoes a mapping; returns the pool of the removed part.
  std::uint16_t remove_part(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t end = address + std::min(size, std::numeric_limits<std::uint64_t>::max() - address);
    std::uint16_t pool = 0;
    for (auto it = first_in(address); it != ranges_.end() && it->first < end;) {
      const auto [start, held] = *it;
      pool = held.pool;
      it = ranges_.erase(it);
      Held rest = held;
      if (start < address) {
        rest.size = address - start;
        ranges_.emplace(start, rest);
      }
      if (start + held.size > end) {
        rest.size = start + held.size - end;
        ranges_.emplace(end, rest);
      }
    }
    return pool;
  }

  /// The pool of the range that ends or starts next to [address, address + size).
  [[nodiscard]] std::uint16_t neighbour_pool(std::uint64_t address, std::uint64_t size) const {
    const auto after = ranges_.lower_bound(address);
    if (after != ranges_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second.size == address) return before->second.pool;
    }
    return after != ranges_.end() && after->first - address == size ? after->second.pool : std::uint16_t{0};
  }

 private:
  /// The first range that ends after `address`.
  Map::iterator first_in(std::uint64_t address) {
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return after;
    const auto before = std::prev(after);
    return address - before->first < before->second.size ? before : after;
  }

  Map ranges_;
};

void note_kind(bool expandable, std::uint16_t pool, ReplayStart& start) {
  bool& seen = expandable ? start.has_expandable : pool == 0 ? start.has_ordinary : start.has_ordinary_private;
  seen = true;
}

void undo_segments(const Snapshot& snapshot, const DeviceTrace& trace, HeldRanges& held, ReplayStart& start) {
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != trace.device) continue;
    note_kind(segment.expandable, segment.pool, start);
    start.has_private |= segment.pool != 0;
    held.add(segment.address, {segment.total_size, segment.expandable ? SegmentKind::expandable : SegmentKind::ordinary,
                               segment.stack, segment.stream, segment.pool});
  }
  for (std::size_t i = trace.entries.size(); i-- > 0;) {
    const TraceEntry& entry = trace.entries[i];
    std::uint16_t pool = 0;
    switch (entry.action) {
      case Action::segment_alloc:
        pool = held.remove_whole(entry.address);
        break;
      case Action::segment_map:
        pool = held.remove_part(entry.address, entry.size);
        break;
      case Action::segment_free:
        held.add(entry.address, {entry.size, SegmentKind::ordinary, entry.stack, entry.stream, entry.pool});
        break;
      case Action::segment_unmap:
        pool = entry.pool != 0 ? entry.pool : held.neighbour_pool(entry.address, entry.size);
        held.add(entry.address, {entry.size, SegmentKind::expandable, entry.stack, entry.stream, pool});
        continue;
      default:
        break;
    }
    if (pool != 0) start.pools.push_back({static_cast<std::uint32_t>(i), pool});
    if (entry.action == Action::segment_alloc || entry.action == Action::segment_map) {
      note_kind(entry.action == Action::segment_map, std::max(pool, entry.pool), start);
    }
    start.has_private |= entry.pool != 0;
  }
  std::reverse(start.pools.begin(), start.pools.end());
}

/// Blocks that the trace frees without an allocation, and blocks of the final state that it never mentions.
std::vector<StartBlock> blocks_before(const Snapshot& snapshot, const DeviceTrace& trace, bool records_requests) {
  std::vector<StartBlock> blocks;
  AddressTable seen;
  for (const TraceEntry& entry : trace.entries) {
    const bool frees = entry.action == Action::free_requested || entry.action == Action::free_completed;
    if ((!frees && entry.action != Action::allocate) || seen.find(entry.address) != AddressTable::kNone) continue;
    seen.insert(entry.address, 0);
    if (!frees) continue;
    StartBlock block;
    block.address = entry.address;
    block.requested = entry.size;
    block.stream = entry.stream;
    block.pending = records_requests && entry.action == Action::free_completed;
    blocks.push_back(block);
  }
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != trace.device) continue;
    for (const SnapshotBlock& final_block : segment.blocks) {
      const bool in_use =
          final_block.state == BlockState::active_allocated || final_block.state == BlockState::active_pending_free;
      if (!in_use || final_block.size == 0 || seen.find(final_block.address) != AddressTable::kNone) continue;
      seen.insert(final_block.address, 0);
      StartBlock block;
      block.address = final_block.address;
      block.size = final_block.size;
      block.requested = final_block.requested_size;
      block.stack = final_block.stack;
      block.stream = segment.stream;
      block.pending = final_block.state == BlockState::active_pending_free;
      blocks.push_back(block);
    }
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const StartBlock& a, const StartBlock& b) { return a.address < b.address; });
  return blocks;
}

/// Works out the size of a block that the trace frees; `room`: up to the next block or the segment's end.
void size_block(StartBlock& block, std::uint64_t room, bool splits, bool expandable, const AllocatorRules& rules) {
  const std::uint64_t rounded = rules.round_size(block.requested);
  if (block.size != 0) {
    block.size = std::min(block.size, room);
  } else if (rounded >= room || !splits) {
    block.size = room;
  } else {
    // It may have been taken from less memory than is free behind it now.
    const std::uint64_t rest = room - rounded;
    block.size = rules.should_split(room, rounded, expandable) ? rounded : room;
    const std::uint64_t excess = rules.largest_excess(rounded, expandable);
    if (std::min(rest, excess) >= kMinBlockSize) block.slack = std::min(rest, excess);
  }
}

bool has(const DeviceTrace& trace, Action action) {
  return std::any_of(trace.entries.begin(), trace.entries.end(),
                     [&](const TraceEntry& entry) { return entry.action == action; });
}

bool completes_own_blocks(const DeviceTrace& trace) {
  AddressTable allocated;
  return std::any_of(trace.entries.begin(), trace.entries.end(), [&](const TraceEntry& entry) {
    const bool known = allocated.find(entry.address) != AddressTable::kNone;
    if (entry.action == Action::allocate && !known) allocated.insert(entry.address, 0);
    return entry.action == Action::free_completed && known;
  });
}

bool leaves_requests_pending(const Snapshot& snapshot, const DeviceTrace& trace) {
  AddressTable pending;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != trace.device) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state != BlockState::active_pending_free || pending.find(block.address) != AddressTable::kNone)
        continue;
      pending.insert(block.address, 0);
    }
  }
  return std::all_of(trace.entries.begin(), trace.entries.end(), [&](const TraceEntry& entry) {
    return entry.action != Action::free_requested || pending.find(entry.address) != AddressTable::kNone;
  });
}

/// A trace with only one of the two kinds may also be the short rest of a long one, with blocks that wait for another
/// stream. It is treated as such unless that is a contradiction: a block allocated in it is completed, never requested;
/// or a block requested in it is not pending in the final segments. Time is linear.
RecordedActions find_recorded_actions(const Snapshot& snapshot, const DeviceTrace& trace) {
  RecordedActions recorded;
  const bool requests = has(trace, Action::free_requested);
  const bool completions = has(trace, Action::free_completed);
  if (completions && !requests) recorded.requests = !completes_own_blocks(trace);
  if (requests && !completions) recorded.completions = leaves_requests_pending(snapshot, trace);
  return recorded;
}

}  // namespace

ReplayStart find_start(const Snapshot& snapshot, const DeviceTrace& trace, const AllocatorRules& rules) {
  ReplayStart start;
  HeldRanges held;
  undo_segments(snapshot, trace, held, start);
  start.recorded = find_recorded_actions(snapshot, trace);
  start.mixed =
      (start.has_ordinary || start.has_ordinary_private) && (start.has_expandable || rules.expandable_segments());
  for (const auto& [address, range] : held.ranges()) {
    if (!start.segments.empty() && range.kind == SegmentKind::expandable) {
      SegmentMap::Range& before = start.segments.back().range;
      if (before.kind == SegmentKind::expandable && before.address + before.size == address) {
        before.size += range.size;
        continue;
      }
    }
    start.segments.push_back({{address, range.size, range.kind}, range.stack, range.stream, range.pool});
  }
  if (start.has_private) {
    start.unsplit_pools = find_unsplit_pools(snapshot, trace, rules, start.segments, start.pools);
  }
  if (start.segments.empty()) return start;

  std::vector<StartBlock> blocks = blocks_before(snapshot, trace, start.recorded.requests);
  auto block = blocks.begin();
  for (const StartSegment& segment : start.segments) {
    const std::uint64_t end = segment.range.address + segment.range.size;
    // Ordinary segments are rather from before the setting expandable_segments was switched on.
    const bool expandable = segment.range.kind == SegmentKind::expandable;
    // Blocks outside every segment are left out: the replay counts their frees as unknown.
    while (block != blocks.end() && block->address < segment.range.address) ++block;
    for (; block != blocks.end() && block->address < end; ++block) {
      const auto next = std::next(block);
      const std::uint64_t limit = next != blocks.end() ? std::min(next->address, end) : end;
      size_block(*block, limit - block->address, !start.never_splits(segment.pool), expandable, rules);
      start.blocks.push_back(*block);
    }
  }
  return start;
}

}  // namespace tidemark::pytorch
