// PyTorch's view of its allocator: the trace, the counters, the snapshot.
#include <iterator>

#include "unit/import/allocator_model.h"

namespace tidemark::pytorch::testing {

void AllocatorModel::note(Action action, std::uint64_t address, std::uint64_t size, std::uint16_t stream,
                          std::uint16_t pool) {
  TraceEntry entry;
  entry.action = action;
  entry.address = address;
  entry.size = size;
  entry.stream = stream;
  entry.pool = settings_.entries_name_pools ? pool : std::uint16_t{0};
  entry.time_us = static_cast<std::int64_t>(trace_.size());
  trace_.push_back(entry);
  totals_.push_back(count());
}

MemoryTotals AllocatorModel::count() const {
  MemoryTotals totals;
  for (const auto& [address, block] : blocks_) {
    if (block.state == kUnmapped) continue;
    totals.reserved += block.size;
    if (block.state == BlockState::active_allocated) totals.allocated += block.size;
    if (block.state != BlockState::inactive) {
      totals.active += block.size;
      totals.requested += block.requested;
    } else if (!settings_.expandable && block.size != segments_[block.segment].size) {
      totals.inactive_split += block.size;
    }
  }
  return totals;
}

std::vector<std::uint64_t> AllocatorModel::blocks(BlockState state) const {
  std::vector<std::uint64_t> addresses;
  for (const auto& [address, block] : blocks_) {
    if (block.state == state) addresses.push_back(address);
  }
  return addresses;
}

Snapshot AllocatorModel::snapshot() const {
  Snapshot snapshot;
  snapshot.streams = {0, 1, 2, 3};
  for (std::uint16_t pool = 0; pool < settings_.pools; ++pool) snapshot.pools.push_back({0, pool});
  AllocatorSettings& settings = snapshot.settings.emplace();
  settings.max_split_size =
      settings_.max_split == ModelSettings::kNone ? -1 : static_cast<std::int64_t>(settings_.max_split);
  settings.expandable_segments = settings_.expandable;
  settings.roundup_power2_divisions = settings_.divisions;
  snapshot.traces.push_back({0, trace_, {}, {}});
  bool continues = false;
  std::size_t last = 0;
  for (const auto& [address, block] : blocks_) {
    continues &= block.segment == last && block.state != kUnmapped;
    last = block.segment;
    if (block.state == kUnmapped) continue;
    if (!continues) {
      const Segment& segment = segments_[block.segment];
      SnapshotSegment fresh;
      fresh.address = address;
      fresh.stream = segment.stream;
      fresh.pool = segment.pool;
      fresh.large = !segment.small;
      fresh.expandable = settings_.expandable;
      snapshot.segments.push_back(fresh);
      continues = true;
    }
    SnapshotSegment& segment = snapshot.segments.back();
    segment.total_size += block.size;
    segment.blocks.push_back({address, block.size, block.requested, {}, block.state});
  }
  return snapshot;
}

}  // namespace tidemark::pytorch::testing
