// The order of addresses against what the driver of an H200 (580.159) handed out for the same calls of cudaMalloc.
#include "phantom/gpu/address_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tidemark::phantom {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kMiB = 1 << 20;

class Addresses : public ::testing::Test {
 protected:
  char* take(std::size_t mebibytes) {
    return static_cast<char*>(space_.reserve(mebibytes * kMiB, std::size_t{2} * kMiB));
  }
  void give(char* start, std::size_t mebibytes) { space_.release(start, mebibytes * kMiB); }
  /// Takes ranges of these sizes; where they lie from the first, in MiB.
  std::vector<long> take_all(const std::vector<std::size_t>& sizes) {
    std::vector<long> places;
    char* first = nullptr;
    for (const std::size_t size : sizes) {
      char* const start = take(size);
      if (first == nullptr) first = start;
      places.push_back((start - first) / static_cast<long>(kMiB));
    }
    return places;
  }

  AddressSpace space_;
};

TEST_F(Addresses, SmallOnesFillTheContextAndThenRegionsBelowIt) {
  EXPECT_THAT(take_all({2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}),
              ElementsAre(0, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, -446, -444));
}

TEST_F(Addresses, LargeOnesLeaveRoomThatSmallOnesTake) {
  EXPECT_THAT(take_all({2, 20, 2, 20, 2, 20, 2, 20, 2}), ElementsAre(0, 74, 94, -446, -426, -478, -458, -510, -490));
}

TEST_F(Addresses, RegionsAreWholeAndTheNewestIsTakenFirst) {
  take(2);  // the hole of the context
  EXPECT_THAT(take_all({20, 32, 64, 100, 128, 200, 256, 500, 512, 600, 1000, 1024, 2000, 2, 20, 32, 64, 100}),
              ElementsAre(0, -520, -584, -712, -840, -1064, -1320, -1832, -2344, -2952, -3976, -5000, -7016, -5016,
                          -2976, -7048, -7112, -7240));
}

TEST_F(Addresses, WhatIsGivenBackIsTakenAgain) {
  std::vector<char*> starts;
  for (int index = 0; index < 100; ++index) starts.push_back(take(20));
  const auto place = [&starts](const char* start) { return (start - starts[0]) / static_cast<long>(kMiB); };
  const auto places = [&](const std::vector<std::size_t>& sizes) {
    std::vector<long> result;
    for (const std::size_t size : sizes) result.push_back(place(take(size)));
    return result;
  };
  EXPECT_EQ(place(starts.back()), -3656);
  for (std::size_t index = 10; index < 20; ++index) give(starts[index], 20);
  EXPECT_THAT(places({2, 40, 300, 2, 20, 200}), ElementsAre(-3636, -840, -3976, -3676, -800, -1064));
  for (std::size_t index = 20; index < 100; ++index) give(starts[index], 20);
  EXPECT_THAT(places({2, 20, 100, 1000, 20}), ElementsAre(-864, -862, -1192, -2216, -1216));
}

TEST_F(Addresses, KeepTheirBytesUntilTheyAreGivenBack) {
  char* const start = take(2);
  *start = 7;
  EXPECT_EQ(*start, 7);
  give(start, 2);
  EXPECT_EQ(take(2), start);
  EXPECT_EQ(*start, 0);
}

TEST_F(Addresses, StacksThatMoveLeaveTheirAddresses) {
  char* const first = take(2);
  space_.move_stacks();
  char* const behind = take(20);
  EXPECT_GT(behind, first);  // the end of the stacks' new region
  EXPECT_EQ(take(100), first - 350 * kMiB);
  space_.move_stacks();
  EXPECT_EQ(take(100), first - 250 * kMiB);
}

TEST_F(Addresses, EndWithTheRange) {
  EXPECT_EQ(space_.reserve(std::size_t{1} << 46, std::size_t{2} * kMiB), nullptr);
  EXPECT_TRUE(space_.contains(take(2)));
  const int local = 0;
  EXPECT_FALSE(space_.contains(&local));
}

}  // namespace
}  // namespace tidemark::phantom
