#include "allocator/rules.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/units.h"

namespace tidemark::pytorch {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(AllocatorRules, RoundsTo512) {
  const AllocatorRules rules{AllocatorSettings{}};
  EXPECT_EQ(rules.round_size(0), 512U);
  EXPECT_EQ(rules.round_size(1), 512U);
  EXPECT_EQ(rules.round_size(512), 512U);
  EXPECT_EQ(rules.round_size(513), 1024U);
  EXPECT_EQ(rules.round_size(32768001), 32768512U);
}

// The allocator's own example: 1200 between 1024 and 2048 with 4 divisions is 1280; here in MiB.
TEST(AllocatorRules, RoundsToDivisionsOfPowersOfTwo) {
  AllocatorSettings settings;
  for (std::uint64_t interval = 1; interval <= 32768; interval *= 2) settings.roundup_power2_divisions[interval] = 4;
  const AllocatorRules rules{settings};
  EXPECT_EQ(rules.round_size(1200 * kMiB), 1280 * kMiB);
  EXPECT_EQ(rules.round_size(1280 * kMiB), 1280 * kMiB);
  EXPECT_EQ(rules.round_size(1280 * kMiB + 1), 1536 * kMiB);
  EXPECT_EQ(rules.round_size(1800 * kMiB), 2048 * kMiB);
  EXPECT_EQ(rules.round_size(1024 * kMiB), 1024 * kMiB);
  EXPECT_EQ(rules.round_size(2048), 2048U);  // not larger than 512 · 4: rounded to 512
  EXPECT_EQ(rules.round_size(1025), 1536U);
  EXPECT_EQ(rules.round_size(2049), 2560U);  // 2048 + 2048 / 4
  EXPECT_EQ(rules.round_size(kMax), kMax);
}

// Each interval up to twice its key has its own divisions: key 4 holds [4 MiB, 8 MiB); the first holds all below too.
TEST(AllocatorRules, HasDivisionsByInterval) {
  AllocatorSettings settings;
  settings.roundup_power2_divisions = {{1, 0}, {2, 2}, {4, 8}, {32768, 1}, {3, 64}};
  const AllocatorRules rules{settings};
  EXPECT_EQ(rules.round_size(5000), 5120U);                           // no divisions: 512
  EXPECT_EQ(rules.round_size(2 * kMiB + 1), 3 * kMiB);                // halves
  EXPECT_EQ(rules.round_size(4 * kMiB + 1), 4 * kMiB + kMiB / 2);     // eighths
  EXPECT_EQ(rules.round_size(8 * kMiB + 1), 8 * kMiB + 512);          // not given
  EXPECT_EQ(rules.round_size((1ULL << 40) + 1), (1ULL << 40) + 512);  // above 64 GiB: the last one, 1 = none
}

TEST(AllocatorRules, SplitsSmallBlocksAt512) {
  const AllocatorRules rules{AllocatorSettings{}};
  EXPECT_TRUE(rules.should_split(2 * kMiB, kMiB, false));
  EXPECT_TRUE(rules.should_split(1024, 512, false));
  EXPECT_FALSE(rules.should_split(512, 512, false));
  EXPECT_EQ(rules.largest_excess(kMiB, false), 511U);
}

TEST(AllocatorRules, SplitsLargeBlocksAboveOneMebibyte) {
  const AllocatorRules rules{AllocatorSettings{}};
  EXPECT_FALSE(rules.should_split(4 * kMiB, 3 * kMiB, false));
  EXPECT_TRUE(rules.should_split(4 * kMiB + 512, 3 * kMiB, false));
  EXPECT_TRUE(rules.should_split(3 * kMiB + 512, 3 * kMiB, true));  // expandable
  EXPECT_EQ(rules.largest_excess(3 * kMiB, false), kMiB);
}

TEST(AllocatorRules, NeverSplitsForRequestsFromMaxSplitSize) {
  AllocatorSettings settings;
  settings.max_split_size = 64 * kMiB;
  const AllocatorRules rules{settings};
  EXPECT_FALSE(rules.should_split(84 * kMiB, 64 * kMiB, false));
  EXPECT_TRUE(rules.should_split(66 * kMiB, 64 * kMiB - 512, false));
  EXPECT_TRUE(rules.should_split(84 * kMiB, 64 * kMiB, true));
  settings.max_split_size = -1;
  EXPECT_TRUE(AllocatorRules{settings}.should_split(84 * kMiB, 64 * kMiB, false));
}

TEST(AllocatorRules, TakesAnySettings) {
  AllocatorSettings settings;
  settings.roundup_power2_divisions = {{1, kMax}, {2, 3}, {4, kMax / 512}, {0, 7}, {std::uint64_t{1} << 63, 9}};
  const AllocatorRules rules{settings};
  EXPECT_EQ(rules.round_size(1000), 1024U);
  EXPECT_EQ(rules.round_size(2 * kMiB + 1), 3 * kMiB);  // divisions count as the power of two below: 2
  EXPECT_EQ(rules.round_size(5 * kMiB + 1), 5 * kMiB + 512);
  EXPECT_EQ(rules.round_size(kMax - 1), kMax);
}

TEST(AllocatorRules, TakesRequestedSizesWithoutRules) {
  const AllocatorRules rules = AllocatorRules::exact_sizes();
  EXPECT_EQ(rules.round_size(0), 1U);
  EXPECT_EQ(rules.round_size(700), 700U);
  EXPECT_TRUE(rules.should_split(701, 700, false));
  EXPECT_FALSE(rules.should_split(700, 700, false));
  EXPECT_EQ(rules.largest_excess(700, false), 0U);
}

TEST(AllocatorRules, ServesFromFreeBlocksOnTheSameSideOfMaxSplitSize) {
  EXPECT_TRUE(AllocatorRules{AllocatorSettings{}}.serves(500 * kMiB, 2 * kMiB));
  AllocatorSettings settings;
  settings.max_split_size = 64 * kMiB;
  const AllocatorRules rules{settings};
  EXPECT_TRUE(rules.serves(64 * kMiB - 512, 2 * kMiB));
  EXPECT_FALSE(rules.serves(64 * kMiB, 2 * kMiB));
  EXPECT_FALSE(rules.serves(64 * kMiB, 64 * kMiB - 512));
  EXPECT_TRUE(rules.serves(64 * kMiB, 64 * kMiB));
  EXPECT_TRUE(rules.serves(84 * kMiB - 512, 64 * kMiB));  // less than 20 MiB would be left over
  EXPECT_FALSE(rules.serves(84 * kMiB, 64 * kMiB));
}

TEST(AllocatorRules, RoundsToMinBlocksWhateverTheSettings) {
  EXPECT_EQ(round_to_min_block(0), 512U);
  EXPECT_EQ(round_to_min_block(512), 512U);
  EXPECT_EQ(round_to_min_block(kMiB + 1), kMiB + 512);
  EXPECT_EQ(round_to_min_block(kMax - 3), kMax);
}

TEST(AllocatorRules, HaveAPoolForSmallBlocks) {
  EXPECT_EQ(get_pool(512), BlockPool::small);
  EXPECT_EQ(get_pool(kMiB), BlockPool::small);
  EXPECT_EQ(get_pool(kMiB + 512), BlockPool::large);
  EXPECT_EQ(pool_of_segment(2 * kMiB), BlockPool::small);
  EXPECT_EQ(pool_of_segment(20 * kMiB), BlockPool::large);
}

TEST(AllocatorRules, ReserveSegmentsBySizeOfTheBlock) {
  EXPECT_EQ(get_allocation_size(512), 2 * kMiB);
  EXPECT_EQ(get_allocation_size(kMiB), 2 * kMiB);
  EXPECT_EQ(get_allocation_size(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(get_allocation_size(10 * kMiB - 512), 20 * kMiB);
  EXPECT_EQ(get_allocation_size(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(get_allocation_size(10 * kMiB + 512), 12 * kMiB);
  EXPECT_EQ(get_allocation_size(kMax), kMax);
}

TEST(AllocatorRules, MapAndUnmapWholeHandles) {
  EXPECT_EQ(mapped_size(512), 2 * kMiB);
  EXPECT_EQ(mapped_size(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(mapped_size(20 * kMiB), 20 * kMiB);
  EXPECT_EQ(mapped_size(20 * kMiB + 512), 40 * kMiB);
  EXPECT_EQ(mapped_size(kMax), kMax);
  EXPECT_EQ(whole_handles(0, 60 * kMiB, BlockPool::large), 60 * kMiB);
  EXPECT_EQ(whole_handles(512, 60 * kMiB, BlockPool::large), 40 * kMiB);
  EXPECT_EQ(whole_handles(512, 60 * kMiB - 512, BlockPool::large), 20 * kMiB);
  EXPECT_EQ(whole_handles(512, 40 * kMiB - 512, BlockPool::large), 0U);
  EXPECT_EQ(whole_handles(512, 40 * kMiB - 512, BlockPool::small), 36 * kMiB);
}

TEST(AllocatorRules, KnowTheLargestBlockOfANewSegment) {
  EXPECT_EQ(largest_new_block(33 * kMiB, false), 32 * kMiB);
  EXPECT_EQ(largest_new_block(39 * kMiB, true), 20 * kMiB);
  EXPECT_EQ(largest_new_block(10 * kMiB, false), 10 * kMiB);
  EXPECT_EQ(largest_new_block(10 * kMiB - 1, false), 0U);  // 8 MiB come in a segment of 20
  EXPECT_EQ(largest_new_block(19 * kMiB, true), 0U);
}

}  // namespace
}  // namespace tidemark::pytorch
