// The order of addresses compared with the driver of an H200 (580.159) for the same calls of cudaMalloc in a process
// that does nothing else.
#include "phantom/gpu/address_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <vector>

#include "phantom/gpu/driver_memory.h"

namespace tidemark::phantom {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kMiB = 1 << 20;

/// A process without other mappings: ranges are at the end of the highest gap, as the kernel places them.
class Gaps {
 public:
  static AddressSource source() {
    gaps() = {{kStart, kBytes}};
    return {map, unmap};
  }

 private:
  static constexpr std::size_t kStart = std::size_t{1} << 44;
  static constexpr std::size_t kBytes = std::size_t{1} << 40;
  static std::map<std::size_t, std::size_t>& gaps() {
    static std::map<std::size_t, std::size_t> gaps;
    return gaps;
  }
  static void* map(std::size_t bytes) {
    for (auto gap = gaps().rbegin(); gap != gaps().rend(); ++gap) {
      if (gap->second < bytes) continue;
      gap->second -= bytes;
      return reinterpret_cast<void*>(gap->first + gap->second);
    }
    return nullptr;
  }
  static void unmap(void* start, std::size_t bytes) {
    auto gap = gaps().emplace(reinterpret_cast<std::size_t>(start), bytes).first;
    if (const auto after = std::next(gap); after != gaps().end() && gap->first + gap->second == after->first) {
      gap->second += after->second;
      gaps().erase(after);
    }
    if (gap == gaps().begin()) return;
    if (const auto before = std::prev(gap); before->first + before->second == gap->first) {
      before->second += gap->second;
      gaps().erase(gap);
    }
  }
};

class Addresses : public ::testing::Test {
 protected:
  char* take(std::size_t mebibytes) {
    return static_cast<char*>(space_.reserve(mebibytes * kMiB, std::size_t{2} * kMiB));
  }
  void give(char* start, std::size_t mebibytes) { space_.release(start, mebibytes * kMiB); }
  /// Takes ranges of these sizes; returns their places relative to the first, in MiB.
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

  AddressSpace space_{Gaps::source()};
  DriverMemory context_{space_};
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

TEST_F(Addresses, FreedRangesAreReused) {
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

TEST(AddressesOfTheProcess, KeepTheirBytesUntilFreed) {
  constexpr std::size_t kBytes = 2 * kMiB;
  AddressSpace space;
  auto* const start = static_cast<char*>(space.reserve(kBytes, kBytes));
  auto* const other = static_cast<char*>(space.reserve(kBytes, kBytes));
  EXPECT_EQ(other, start + kBytes);
  *start = 7;
  EXPECT_EQ(*start, 7);
  space.release(start, kBytes);
  EXPECT_EQ(space.reserve(kBytes, kBytes), start);
  EXPECT_EQ(*start, 0);
  EXPECT_TRUE(space.contains(start));
  EXPECT_FALSE(space.contains(&space));
  space.release(start, kBytes);
  space.release(other, kBytes);
  EXPECT_FALSE(space.contains(start));
}

TEST_F(Addresses, EndWithTheRange) {
  EXPECT_EQ(space_.reserve(std::size_t{1} << 46, std::size_t{2} * kMiB), nullptr);
  EXPECT_TRUE(space_.contains(take(2)));
}

}  // namespace
}  // namespace tidemark::phantom
