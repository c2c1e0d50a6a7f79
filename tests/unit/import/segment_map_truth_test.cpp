// The map of segments at the end of a trace, against the segments that PyTorch wrote into the same file.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/fragmentation/fragmentation.h"
#include "analyze/fragmentation/segment_map.h"
#include "import/open.h"
#include "import/pytorch_snapshot/read_snapshot.h"
#include "unit/import/recorded_snapshots.h"

namespace tidemark::pytorch::testing {
namespace {

using Piece = std::tuple<std::uint64_t, std::uint64_t, tidemark::MapBlock::State>;

tidemark::MapBlock::State use_of(BlockState state) {
  if (state == BlockState::active_allocated) return tidemark::MapBlock::State::allocated;
  return state == BlockState::active_pending_free ? tidemark::MapBlock::State::pending_free
                                                  : tidemark::MapBlock::State::free;
}

class SegmentMapTruth : public RecordedSnapshot {};

TEST_P(SegmentMapTruth, EqualsTheFinalSegments) {
  const std::string path = GetParam() + ".pickle.xz";
  const auto snapshot = read_snapshot(path);
  const auto store = open_store(path);
  ASSERT_TRUE(snapshot.ok() && store.ok());
  std::vector<Piece> expected;
  std::uint64_t inactive_split = 0;
  for (const SnapshotSegment& segment : snapshot->segments) {
    if (segment.device != 0) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      // Stretches of an expandable segment that follow each other are several segments in the file.
      if (use_of(block.state) == tidemark::MapBlock::State::free && segment.expandable) continue;
      expected.emplace_back(block.address, block.size, use_of(block.state));
      if (use_of(block.state) == tidemark::MapBlock::State::free && segment.blocks.size() > 1)
        inactive_split += block.size;
    }
  }
  std::sort(expected.begin(), expected.end());

  const auto position = position_at(*store, 0, Moment{Moment::Kind::end, 0, 0});
  ASSERT_TRUE(position.has_value());
  std::vector<Piece> found;
  for (const MapSegment& segment : segment_map(*store, 0, *position)) {
    for (const tidemark::MapBlock& block : segment.blocks) {
      if (block.state == tidemark::MapBlock::State::free && segment.expandable) continue;
      found.emplace_back(block.address, block.size, block.state);
    }
  }
  EXPECT_TRUE(found == expected) << found.size() << " blocks, " << expected.size() << " in the file";

  Symbols symbols(store->definitions);
  const auto fragmentation = analyze_fragmentation(*store, symbols, {});
  ASSERT_TRUE(fragmentation.ok());
  EXPECT_EQ(fragmentation->devices[0].at_end.inactive_split, inactive_split);
  const FragmentationDevice& device = fragmentation->devices[0];
  EXPECT_EQ(device.at_peak_allocated.value().allocated, device.totals.peak_allocated_bytes);
  EXPECT_EQ(device.at_peak_reserved.value().reserved, device.totals.peak_reserved_bytes);
}

INSTANTIATE_TEST_SUITE_P(Settings, SegmentMapTruth, ::testing::ValuesIn(snapshots_of_settings()), test_name);
INSTANTIATE_TEST_SUITE_P(Shared, SegmentMapTruth,
                         ::testing::ValuesIn(shared_snapshots({"healthy", "oom", "varlen", "varlen_expandable",
                                                               "varlen_max_split_64", "lora_python_stacks"})),
                         test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SegmentMapTruth);

}  // namespace
}  // namespace tidemark::pytorch::testing
