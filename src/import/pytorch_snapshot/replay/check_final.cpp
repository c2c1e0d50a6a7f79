// The end of a replay against the final segments of the snapshot.
#include <algorithm>
#include <iterator>
#include <vector>

#include "import/pytorch_snapshot/replay/pass.h"

namespace tidemark::pytorch {

void ReplayPass::check_final(const Snapshot& snapshot) {
  const bool any = std::any_of(snapshot.segments.begin(), snapshot.segments.end(),
                               [&](const SnapshotSegment& segment) { return segment.device == trace_.device; });
  if (!any && totals_.reserved != 0) {
    summary_.quality.has_final_segments = false;
    return;
  }
  std::size_t matched = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != trace_.device) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::active_allocated || block.state == BlockState::active_pending_free) {
        check_block(block, matched);
      }
    }
  }
  summary_.quality.final_blocks_extra = blocks_in_use_ - matched;
  check_segments(snapshot);
}

void ReplayPass::check_block(const SnapshotBlock& expected, std::size_t& matched) {
  const BlockIndex index = map_.at(expected.address);
  if (index == SegmentMap::kNone || map_[index].use == BlockUse::free) {
    ++summary_.quality.final_blocks_missing;
    return;
  }
  const MapBlock& block = map_[index];
  ++matched;
  const BlockUse use = expected.state == BlockState::active_allocated ? BlockUse::allocated : BlockUse::pending;
  const bool same_request = std::min(expected.requested_size, block.size) == block.requested;
  if (block.size == expected.size && block.use == use && same_request) return;
  ++summary_.quality.final_blocks_different;
  if (sink_ != nullptr || expected.size == 0 || !same_request) return;
  (block.initial ? learned_.initial : learned_.entries)[block.origin] = expected.size;
}

void ReplayPass::check_segments(const Snapshot& snapshot) {
  std::vector<SegmentMap::Range> expected;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == trace_.device)
      expected.push_back({segment.address, segment.total_size, SegmentKind::ordinary});
  }
  const auto before = [](const SegmentMap::Range& a, const SegmentMap::Range& b) {
    return a.address != b.address ? a.address < b.address : a.size < b.size;
  };
  std::sort(expected.begin(), expected.end(), before);
  const std::vector<SegmentMap::Range> actual = map_.segments();
  std::vector<SegmentMap::Range> common;
  std::set_intersection(expected.begin(), expected.end(), actual.begin(), actual.end(), std::back_inserter(common),
                        before);
  summary_.quality.final_segments_missing = expected.size() - common.size();
  summary_.quality.final_segments_extra = actual.size() - common.size();
}

}  // namespace tidemark::pytorch
