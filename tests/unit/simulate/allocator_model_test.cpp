// The model of the allocator against examples worked out by hand from its rules.
#include "simulate/allocator_model.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/units.h"

namespace tidemark {
namespace {

AllocatorModel model(const pytorch::AllocatorSettings& settings = {}, AllocatorModel::Limit limit = {}) {
  return AllocatorModel(settings, limit);
}

TEST(AllocatorModel, SmallRequestsShareASegment) {
  AllocatorModel allocator = model();
  const auto first = *allocator.allocate(1, 0, 0);
  const auto second = *allocator.allocate(513, 0, 0);
  EXPECT_EQ(allocator.size(first), 512U);
  EXPECT_EQ(allocator.size(second), 1024U);
  EXPECT_EQ(allocator.address(second), allocator.address(first) + 512);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  EXPECT_EQ(*allocator.state().largest_free, 2 * kMiB - 1536);
}

TEST(AllocatorModel, TheSmallestFreeBlockThatIsLargeEnoughIsTaken) {
  AllocatorModel allocator = model();
  const auto large = *allocator.allocate(40 * kMiB, 0, 0);
  const auto small = *allocator.allocate(30 * kMiB, 0, 0);
  const std::uint64_t address = allocator.address(small);
  allocator.free(large);
  allocator.free(small);
  EXPECT_EQ(allocator.address(*allocator.allocate(25 * kMiB, 0, 0)), address);
  EXPECT_EQ(allocator.reserved(), 70 * kMiB);
}

TEST(AllocatorModel, StreamsAndPoolsKeepTheirBlocks) {
  AllocatorModel allocator = model();
  allocator.free(*allocator.allocate(40 * kMiB, 0, 0));
  allocator.allocate(40 * kMiB, 1, 0);
  allocator.allocate(40 * kMiB, 0, 1);
  EXPECT_EQ(allocator.reserved(), 120 * kMiB);
}

TEST(AllocatorModel, FreedNeighboursAreOneBlock) {
  AllocatorModel allocator = model();
  const auto first = *allocator.allocate(5 * kMiB, 0, 0);  // of a segment of 20 MiB
  const auto second = *allocator.allocate(5 * kMiB, 0, 0);
  allocator.free(first);
  EXPECT_EQ(*allocator.state().largest_free, 10 * kMiB);
  allocator.free(second);
  EXPECT_EQ(*allocator.state().largest_free, 20 * kMiB);
  EXPECT_EQ(*allocator.state().free_blocks, 1U);
}

// A block of 100 MiB is not split for a request below max_split_size, which gets a separate segment.
TEST(AllocatorModel, LargeBlocksStayWholeWithMaxSplitSize) {
  pytorch::AllocatorSettings settings;
  settings.max_split_size = 64 * kMiB;
  AllocatorModel allocator = model(settings);
  allocator.free(*allocator.allocate(100 * kMiB, 0, 0));
  allocator.allocate(30 * kMiB, 0, 0);
  EXPECT_EQ(allocator.reserved(), 130 * kMiB);
  allocator.allocate(90 * kMiB, 0, 0);  // less than 20 MiB smaller
  EXPECT_EQ(allocator.reserved(), 130 * kMiB);
}

TEST(AllocatorModel, SegmentsThatAreFreeAsAWholeAreReleasedBeforeARequestFails) {
  AllocatorModel allocator = model({}, {.bytes = 60 * kMiB});
  const auto kept = *allocator.allocate(4 * kMiB, 0, 0);  // holds a segment of 20 MiB
  allocator.free(*allocator.allocate(30 * kMiB, 0, 0));
  EXPECT_TRUE(allocator.allocate(40 * kMiB, 0, 0).has_value());
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  EXPECT_FALSE(allocator.allocate(20 * kMiB, 0, 0).has_value());
  EXPECT_EQ(*allocator.outcome().retries, 2U);
  EXPECT_EQ(allocator.size(kept), 4 * kMiB);
}

TEST(AllocatorModel, ExpandableSegmentsGrow) {
  pytorch::AllocatorSettings settings;
  settings.expandable_segments = true;
  AllocatorModel allocator = model(settings);
  const auto first = *allocator.allocate(30 * kMiB, 0, 0);
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
  const auto second = *allocator.allocate(30 * kMiB, 0, 0);  // 10 MiB are mapped already
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  EXPECT_EQ(allocator.address(second), allocator.address(first) + 30 * kMiB);
  allocator.free(first);
  allocator.empty_cache();  // one handle of 20 MiB lies wholly in the free block
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
  allocator.allocate(35 * kMiB, 0, 0);  // does not fit into the hole of 30 MiB
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  allocator.allocate(30 * kMiB, 0, 0);  // does: 20 MiB are mapped again
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
}

// Sizes of a file may be anything.
TEST(AllocatorModel, RequestsForMoreThanAnyGpuHasFail) {
  pytorch::AllocatorSettings expandable;
  expandable.expandable_segments = true;
  for (const auto& settings : {pytorch::AllocatorSettings(), expandable}) {
    AllocatorModel allocator = model(settings);
    for (const std::uint64_t size : {~std::uint64_t{0}, std::uint64_t{1} << 60, std::uint64_t{1} << 51}) {
      EXPECT_FALSE(allocator.allocate(size, 0, 0).has_value());
    }
    EXPECT_TRUE(allocator.allocate(1 << 20, 0, 0).has_value());
  }
}

// 70 of 100 MiB are reserved when 60 are the threshold: the block that was not used for longest is released, not the
// other.
TEST(AllocatorModel, UnusedBlocksAreCollectedAboveTheThreshold) {
  pytorch::AllocatorSettings settings;
  settings.garbage_collection_threshold = 0.6;
  AllocatorModel allocator = model(settings, {.bytes = 100 * kMiB, .by_fraction = true});
  const auto old = *allocator.allocate(40 * kMiB, 0, 0);
  const auto recent = *allocator.allocate(30 * kMiB, 0, 0);
  allocator.free(old);
  allocator.free(recent);
  for (int search = 0; search < 8; ++search) allocator.free(*allocator.allocate(25 * kMiB, 0, 0));
  allocator.allocate(50 * kMiB, 0, 0);
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  EXPECT_EQ(*allocator.outcome().retries, 0U);
}

}  // namespace
}  // namespace tidemark
