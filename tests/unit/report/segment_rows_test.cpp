#include "report/plot/segment_rows.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

using State = MapBlock::State;

MapSegment segment(std::uint64_t address, std::vector<std::pair<std::uint64_t, State>> blocks) {
  MapSegment result;
  result.address = address;
  for (const auto& [size, state] : blocks) {
    result.blocks.push_back({address + result.size, size, state, {}, {}});
    result.size += size;
  }
  return result;
}

TEST(SegmentRows, LargestFirstAndSmallOnesTogether) {
  const std::vector<MapSegment> map = {segment(0, {{200, State::allocated}}),
                                       segment(5000, {{600, State::allocated}, {400, State::free}}),
                                       segment(9000, {{200, State::pending_free}})};
  const SegmentRows rows = lay_out_segments(map, 10);
  ASSERT_EQ(rows.segments.size(), 3U);
  EXPECT_EQ(rows.rows, 2U);
  EXPECT_EQ(rows.segments[0].segment, &map[1]);
  ASSERT_EQ(rows.segments[0].blocks.size(), 2U);
  EXPECT_DOUBLE_EQ(rows.segments[0].blocks[1].begin, 0.6);
  EXPECT_DOUBLE_EQ(rows.segments[0].blocks[1].width, 0.4);
  EXPECT_EQ(rows.segments[1].row, 1U);
  EXPECT_EQ(rows.segments[2].row, 1U);
  EXPECT_GT(rows.segments[2].begin, 0.2);
  EXPECT_EQ(rows.labels(), (std::vector<std::string>{"1000 B", "\xE2\x89\xA4 200 B"}));
}

TEST(SegmentRows, CountsWhatHasNoRow) {
  const std::vector<MapSegment> map = {segment(0, {{1000, State::allocated}}), segment(5000, {{900, State::allocated}}),
                                       segment(9000, {{10, State::free}})};
  const SegmentRows rows = lay_out_segments(map, 1);
  EXPECT_EQ(rows.segments.size(), 1U);
  EXPECT_EQ(rows.other_segments, 2U);  // no rows follow an omitted one
  EXPECT_EQ(rows.other_bytes, 910U);
}

TEST(SegmentRows, NarrowBlocksAreDrawnTogether) {
  // 1 of 10,000 is less than 1/800, 8 blocks are too, 13 are not: two runs, then a block of its own.
  MapSegment map = segment(0, {});
  for (int block = 0; block < 20; ++block) {
    map.blocks.push_back({map.size, 1, block % 2 == 0 ? State::allocated : State::free, {}, {}});
    ++map.size;
  }
  map.blocks.push_back({map.size, 9980, State::free, {}, {}});
  map.size = 10'000;
  const SegmentRows rows = lay_out_segments(std::span(&map, 1), 1);
  const std::vector<DrawnBlocks>& drawn = rows.segments.at(0).blocks;
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_EQ(drawn[0].count, 13U);
  EXPECT_EQ(drawn[0].bytes, (std::array<std::uint64_t, 3>{6, 7, 0}));
  EXPECT_EQ(drawn[1].count, 7U);
  EXPECT_TRUE(drawn[2].alone());
  EXPECT_NEAR(drawn[2].begin, 0.002, 1e-9);
}

TEST(SegmentRows, ThoseThatLookAlikeHaveOneRow) {
  // Of the segments of 2000, three are full (one has two blocks, one a free byte), one is free and one half of each. Of
  // the segments of 400, six are full: five fit beside each other.
  std::vector<MapSegment> map = {segment(0, {{2000, State::allocated}}),
                                 segment(10'000, {{1500, State::allocated}, {500, State::allocated}}),
                                 segment(20'000, {{2000, State::free}}),
                                 segment(30'000, {{1, State::free}, {1999, State::allocated}}),
                                 segment(40'000, {{1000, State::allocated}, {1000, State::free}}),
                                 segment(50'000, {{200, State::pending_free}}),
                                 segment(60'000, {{200, State::allocated}})};
  for (std::uint64_t index = 0; index < 6; ++index) {
    map.push_back(segment(100'000 + 1000 * index, {{390, State::allocated}}));
  }
  const SegmentRows rows = lay_out_segments(map, 10);
  EXPECT_EQ(rows.rows, 5U);
  EXPECT_EQ(rows.labels(), (std::vector<std::string>{"3 \xC3\x97 2.0 KiB", "2.0 KiB", "2.0 KiB", "6 \xC3\x97 390 B",
                                                     "\xE2\x89\xA4 200 B"}));
  ASSERT_EQ(rows.segments.size(), 10U);
  EXPECT_EQ(rows.segments[0].segment, map.data());
  EXPECT_EQ(rows.segments[0].alike, 3U);
  EXPECT_EQ(rows.segments[0].alike_bytes, (std::array<std::uint64_t, 3>{1, 5999, 0}));
  EXPECT_EQ(rows.segments[1].segment, &map[2]);
  EXPECT_EQ(rows.segments[3].alike, 6U);
  EXPECT_EQ(rows.segments[7].row, 3U);
  EXPECT_LE(rows.segments[7].begin + 0.195, 1.0);
  EXPECT_EQ(rows.segments[8].alike, 1U);
}

TEST(SegmentRows, NothingToDraw) {
  EXPECT_EQ(lay_out_segments({}, 5).rows, 0U);
}

}  // namespace
}  // namespace tidemark
