// The entries of a trace that reserve and release memory.
#include <limits>

#include "import/pytorch_snapshot/replay/pass.h"

namespace tidemark::pytorch {

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
  add_segment({entry.address, entry.size, kind, entry.stream, pool}, moment());
}

void ReplayPass::add_segment(const ReplaySegment& segment, const ReplayMoment& when) {
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
  sink_->segment_released({gone.address, gone.size, gone.kind, stream, gone.pool}, moment(implied), totals_);
}

}  // namespace tidemark::pytorch
