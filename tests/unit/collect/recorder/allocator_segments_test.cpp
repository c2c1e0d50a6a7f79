// PyTorch's reserved memory after its allocator released segments; expected values computed by hand.
#include "collect/recorder/lanes/allocator_segments.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace tidemark {
namespace {

using ring::DriverCall;

constexpr std::uint64_t kSegmentPage = 2 << 20;

class AllocatorSegmentsTest : public ::testing::Test {
 protected:
  /// "DEVICE ALLOCATED RESERVED" of the release; "" if the call was none.
  std::string take(DriverCall call, std::int8_t device, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0) {
    Event base;
    base.time_ns = 7;
    base.thread = ThreadId{3};
    const std::optional<Event> release = segments_.take({call, device, {a, b, c}, true}, base);
    if (!release) return "";
    EXPECT_EQ(release->kind, EventKind::release);
    EXPECT_EQ(release->time_ns, 7U);
    EXPECT_EQ(release->thread, ThreadId{3});
    EXPECT_TRUE(release->has_totals);
    segments_.see(*release);
    return fmt::format("{} {} {}", to_string(release->device), release->total_allocated, release->total_reserved);
  }
  void say(DeviceType type, std::int8_t device, std::uint64_t allocated, std::uint64_t reserved) {
    Event event;
    event.device = {type, device};
    event.has_totals = true;
    event.total_allocated = allocated;
    event.total_reserved = reserved;
    segments_.see(event);
  }

  AllocatorSegments segments_;
};

TEST_F(AllocatorSegmentsTest, EachSegmentLeavesItsOwnDevice) {
  EXPECT_EQ(take(DriverCall::allocate, 0, 0x1000, 2 * kSegmentPage), "");
  EXPECT_EQ(take(DriverCall::allocate, 1, 0x9000, 10 * kSegmentPage), "");
  say(DeviceType::cuda, 0, 512, 2 * kSegmentPage);
  say(DeviceType::cuda, 1, 0, 10 * kSegmentPage);
  say(DeviceType::hip, 1, 5, 5);
  EXPECT_EQ(take(DriverCall::allocate, 0, 0x5000, kSegmentPage), "");
  say(DeviceType::cuda, 0, 1024, 3 * kSegmentPage);
  EXPECT_EQ(take(DriverCall::free, -1, 0x9000), "cuda:1 0 0");
  EXPECT_EQ(take(DriverCall::free, -1, 0x1000), fmt::format("cuda:0 1024 {}", kSegmentPage));
  EXPECT_EQ(take(DriverCall::free, -1, 0x5000), "cuda:0 1024 0");
  EXPECT_EQ(take(DriverCall::free, -1, 0x5000), "") << "given back before";
}

// Expandable segments: physical memory that is mapped page by page; several pages may go at once.
TEST_F(AllocatorSegmentsTest, PagesAreReservedWhileTheyAreMapped) {
  for (std::uint64_t page = 0; page < 3; ++page) {
    EXPECT_EQ(take(DriverCall::create, 1, 70 + page, kSegmentPage), "");
    EXPECT_EQ(take(DriverCall::map, -1, 0x10000000 + page * kSegmentPage, kSegmentPage, 70 + page), "");
  }
  say(DeviceType::cuda, 1, kSegmentPage, 3 * kSegmentPage);
  EXPECT_EQ(take(DriverCall::unmap, -1, 0x10000000 + kSegmentPage, 2 * kSegmentPage),
            fmt::format("cuda:1 {} {}", kSegmentPage, kSegmentPage));
  EXPECT_EQ(take(DriverCall::unmap, -1, 0x10000000 + kSegmentPage, 2 * kSegmentPage), "");
}

TEST_F(AllocatorSegmentsTest, MemoryOfAnotherProcessIsNotReservedHere) {
  say(DeviceType::cuda, 0, 0, kSegmentPage);
  EXPECT_EQ(take(DriverCall::map, -1, 0x10000000, kSegmentPage, 99), "");
  EXPECT_EQ(take(DriverCall::unmap, -1, 0x10000000, kSegmentPage), "");
}

// Segments from before recording began, or of an allocator that does not report (PYTORCH_NO_CUDA_MEMORY_CACHING).
TEST_F(AllocatorSegmentsTest, UnknownSegmentsAreIgnored) {
  EXPECT_EQ(take(DriverCall::free, -1, 0x1000), "");
  EXPECT_EQ(take(DriverCall::allocate, 0, 0x1000, kSegmentPage), "");
  EXPECT_EQ(take(DriverCall::free, -1, 0x1000), "");
  EXPECT_EQ(take(DriverCall::allocate, -1, 0x2000, kSegmentPage), "") << "of an unknown device";
  EXPECT_EQ(take(DriverCall::free, -1, 0x2000), "");
}

}  // namespace
}  // namespace tidemark
