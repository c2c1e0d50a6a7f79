// Calls of the CUDA driver as events; each list of events was computed by hand.
#include "collect/recorder/lanes/driver_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidemark {
namespace {

using ring::DriverCall;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DriverMemoryTest : public ::testing::Test {
 protected:
  /// The effect of the call: "+ DEVICE ADDRESS SIZE by STACK" for memory taken, "- DEVICE ADDRESS" for memory released.
  std::vector<std::string> take(DriverCall call, std::int8_t device, std::uint64_t a = 0, std::uint64_t b = 0,
                                std::uint64_t c = 0) {
    Event base;
    base.time_ns = ++time_;
    base.stack = StackId{static_cast<std::uint32_t>(time_)};
    std::vector<Event> events;
    memory.take({call, device, {a, b, c}}, base, events);
    std::vector<std::string> lines;
    for (const Event& event : events) {
      EXPECT_EQ(event.time_ns, time_);
      lines.push_back(
          event.kind == EventKind::allocate
              ? fmt::format("+ {} {} {} by {}", to_string(event.device), event.address, event.size, event.stack.value)
              : fmt::format("- {} {}", to_string(event.device), event.address));
    }
    return lines;
  }

  DriverMemory memory;

 private:
  std::uint64_t time_ = 0;
};

TEST_F(DriverMemoryTest, FreeHasTheKindOfItsMemory) {
  EXPECT_THAT(take(DriverCall::allocate, 1, 100, 4096), ElementsAre("+ cuda-driver:1 100 4096 by 1"));
  EXPECT_THAT(take(DriverCall::allocate_managed, 0, 200, 512), ElementsAre("+ cuda-managed:0 200 512 by 2"));
  EXPECT_THAT(take(DriverCall::allocate_host, -1, 300, 64), ElementsAre("+ cuda-host 300 64 by 3"));
  EXPECT_THAT(take(DriverCall::free, -1, 200), ElementsAre("- cuda-managed:0 200"));
  EXPECT_THAT(take(DriverCall::free, -1, 100), ElementsAre("- cuda-driver:1 100"));
  EXPECT_THAT(take(DriverCall::free, -1, 300), ElementsAre("- cuda-host 300"));
  EXPECT_EQ(memory.unmatched(), 0U);
}

TEST_F(DriverMemoryTest, CountsFreesOfUnrecordedMemory) {
  EXPECT_THAT(take(DriverCall::free, -1, 1), IsEmpty());
  EXPECT_THAT(take(DriverCall::release, -1, 2), IsEmpty());
  EXPECT_THAT(take(DriverCall::unmap, -1, 3, 4096), IsEmpty());
  EXPECT_EQ(memory.unmatched(), 3U);
}

// Blocks of pools are not recorded individually, and cuMemFreeAsync accepts those of cuMemAlloc as well.
TEST_F(DriverMemoryTest, AFreeMayBeOfAPool) {
  EXPECT_THAT(take(DriverCall::free, -1, 1, 1), IsEmpty());
  EXPECT_THAT(take(DriverCall::allocate, 0, 1, 4096), SizeIs(1));
  EXPECT_THAT(take(DriverCall::free, -1, 1, 1), ElementsAre("- cuda-driver:0 1"));
  EXPECT_EQ(memory.unmatched(), 0U);
}

// As in PyTorch's expandable segments: mapped, released at once, freed when unmapped.
TEST_F(DriverMemoryTest, ReleasedHandleIsFreedAfterLastUnmap) {
  EXPECT_THAT(take(DriverCall::create, 0, 7, 2 << 20), ElementsAre("+ cuda-driver:0 7 2097152 by 1"));
  EXPECT_THAT(take(DriverCall::map, -1, 0x1000000, 2 << 20, 7), IsEmpty());
  EXPECT_THAT(take(DriverCall::release, -1, 7), IsEmpty());
  EXPECT_THAT(take(DriverCall::unmap, -1, 0x1000000, 2 << 20), ElementsAre("- cuda-driver:0 7"));
}

TEST_F(DriverMemoryTest, UnmappedHandleIsFreedAtLastRelease) {
  take(DriverCall::create, 0, 7, 2 << 20);
  take(DriverCall::map, -1, 0x1000000, 2 << 20, 7);
  EXPECT_THAT(take(DriverCall::adopt, -1, 7), IsEmpty());  // cuMemRetainAllocationHandle
  EXPECT_THAT(take(DriverCall::unmap, -1, 0x1000000, 2 << 20), IsEmpty());
  EXPECT_THAT(take(DriverCall::release, -1, 7), IsEmpty());
  EXPECT_THAT(take(DriverCall::release, -1, 7), ElementsAre("- cuda-driver:0 7"));
  EXPECT_EQ(memory.unmatched(), 0U);
}

TEST_F(DriverMemoryTest, OneCallMayUnmapSeveralHandles) {
  constexpr std::uint64_t kPage = 4096;
  for (const std::uint64_t handle : {7U, 8U, 9U}) {
    take(DriverCall::create, 0, handle, kPage);
    take(DriverCall::map, -1, kPage * handle, kPage, handle);
    take(DriverCall::release, -1, handle);
  }
  EXPECT_THAT(take(DriverCall::unmap, -1, 7 * kPage, 2 * kPage), ElementsAre("- cuda-driver:0 7", "- cuda-driver:0 8"));
  EXPECT_THAT(take(DriverCall::unmap, -1, 9 * kPage, kPage), ElementsAre("- cuda-driver:0 9"));
}

TEST_F(DriverMemoryTest, MemoryOfAnotherProcessIsNotCounted) {
  EXPECT_THAT(take(DriverCall::adopt, -1, 5), IsEmpty());  // cuMemImportFromShareableHandle
  take(DriverCall::map, -1, 0x1000, 4096, 5);
  EXPECT_THAT(take(DriverCall::unmap, -1, 0x1000, 4096), IsEmpty());
  EXPECT_THAT(take(DriverCall::release, -1, 5), IsEmpty());
  EXPECT_EQ(memory.unmatched(), 0U);
}

TEST_F(DriverMemoryTest, PhysicalHostMemoryIsHostMemory) {
  EXPECT_THAT(take(DriverCall::create, -1, 7, 4096), ElementsAre("+ cuda-host 7 4096 by 1"));
  EXPECT_THAT(take(DriverCall::release, -1, 7), ElementsAre("- cuda-host 7"));
}

TEST_F(DriverMemoryTest, PoolReleasesItsLatestPieces) {
  EXPECT_THAT(take(DriverCall::pool, 0, 1000, 32), ElementsAre("+ cuda-driver:0 1000 32 by 1"));
  EXPECT_THAT(take(DriverCall::pool, 0, 1000, 96), ElementsAre("+ cuda-driver:0 1001 64 by 2"));
  EXPECT_THAT(take(DriverCall::pool, 0, 1000, 96), IsEmpty());
  EXPECT_THAT(take(DriverCall::pool, 0, 1000, 100), ElementsAre("+ cuda-driver:0 1002 4 by 4"));
  // 90 bytes go: the last piece whole, of the 64 before it 6 stay, still with the stack that took them.
  EXPECT_THAT(take(DriverCall::pool, 0, 1000, 38),
              ElementsAre("- cuda-driver:0 1002", "- cuda-driver:0 1001", "+ cuda-driver:0 1001 6 by 2"));
  EXPECT_THAT(take(DriverCall::pool, 0, 1000, 0), ElementsAre("- cuda-driver:0 1001", "- cuda-driver:0 1000"));
  EXPECT_THAT(take(DriverCall::pool, 0, 1000, 0), IsEmpty());
}

TEST_F(DriverMemoryTest, ResetReleasesAllDeviceMemory) {
  take(DriverCall::allocate, 0, 100, 1);
  take(DriverCall::allocate, 1, 200, 1);
  take(DriverCall::allocate_host, -1, 300, 1);
  take(DriverCall::create, 0, 400, 1);
  take(DriverCall::pool, 0, 500, 1);
  EXPECT_THAT(take(DriverCall::reset_device, 0),
              ElementsAre("- cuda-driver:0 100", "- cuda-driver:0 400", "- cuda-driver:0 500"));
  EXPECT_THAT(take(DriverCall::free, -1, 200), ElementsAre("- cuda-driver:1 200"));
  EXPECT_THAT(take(DriverCall::free, -1, 300), ElementsAre("- cuda-host 300"));
}

}  // namespace
}  // namespace tidemark
