#include "analyze/plan/verification.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark {
namespace {

constexpr Device kVerifiedGpu{DeviceType::cuda, 0};

Event event_of(EventKind kind, std::uint64_t size, std::uint64_t allocated, std::uint64_t reserved) {
  Event event;
  event.kind = kind;
  event.size = size;
  event.total_allocated = allocated;
  event.total_reserved = reserved;
  event.device = kVerifiedGpu;
  event.has_totals = true;
  return event;
}

// Peaks: 3000 allocated, 4096 reserved.
std::vector<Event> a_run() {
  return {event_of(EventKind::allocate, 1000, 1000, 2048), event_of(EventKind::allocate, 2000, 3000, 4096),
          event_of(EventKind::free, 1000, 2000, 4096), event_of(EventKind::allocate, 512, 2512, 4096)};
}

TEST(Verification, TheSameEvents) {
  std::vector<Event> longer = a_run();
  longer.push_back(event_of(EventKind::allocate, 1 << 20, 9'000'000, 9'000'000));  // the program went on
  ASSERT_TRUE(reaches({{{}, kVerifiedGpu, longer}}, {{{}, kVerifiedGpu, a_run()}}));
  const Verification verification = verify({{{}, kVerifiedGpu, a_run()}}, {{{}, kVerifiedGpu, longer}});
  EXPECT_TRUE(verification.equal);
  EXPECT_TRUE(verification.within_tolerance);
  ASSERT_EQ(verification.devices.size(), 1U);
  EXPECT_EQ(verification.devices[0].real.allocated, 3000U);
  EXPECT_EQ(verification.devices[0].real.reserved, 4096U);
  EXPECT_EQ(verification.devices[0].real.allocations, 3U);
  EXPECT_EQ(verification.devices[0].event_count, 4U);
}

TEST(Verification, OneSizeDiffers) {
  std::vector<Event> altered = a_run();
  altered[3].size = 1024;
  altered[3].total_allocated = 3024;  // 0.8% more than planned
  Verification verification = verify({{{}, kVerifiedGpu, a_run()}}, {{{}, kVerifiedGpu, altered}});
  EXPECT_FALSE(verification.equal);
  EXPECT_TRUE(verification.within_tolerance);
  ASSERT_TRUE(verification.devices[0].difference);
  EXPECT_EQ(verification.devices[0].difference->index, 3U);
  EXPECT_EQ(verification.devices[0].difference->planned->size, 512U);
  EXPECT_EQ(verification.devices[0].difference->real->size, 1024U);
  altered[3].total_allocated = 3031;  // 1.02% more
  verification = verify({{{}, kVerifiedGpu, a_run()}}, {{{}, kVerifiedGpu, altered}});
  EXPECT_FALSE(verification.within_tolerance);
}

TEST(Verification, TheRealRunEndsEarlier) {
  std::vector<Event> shorter = a_run();
  shorter.pop_back();
  EXPECT_FALSE(reaches({{{}, kVerifiedGpu, shorter}}, {{{}, kVerifiedGpu, a_run()}}));
  const Verification verification = verify({{{}, kVerifiedGpu, a_run()}}, {{{}, kVerifiedGpu, shorter}});
  EXPECT_FALSE(verification.equal);
  EXPECT_FALSE(verification.within_tolerance);
  EXPECT_EQ(verification.devices[0].difference->index, 3U);
  EXPECT_FALSE(verification.devices[0].difference->real);
}

TEST(Verification, DevicesAreThoseOfTheSameRank) {
  const std::vector<DeviceEvents> planned = {{0, kVerifiedGpu, a_run()}, {1, {DeviceType::cuda, 1}, a_run()}};
  std::vector<DeviceEvents> real = {planned[1], planned[0]};
  EXPECT_TRUE(verify(planned, real).equal);
  real.pop_back();
  const Verification verification = verify(planned, real);
  EXPECT_FALSE(verification.within_tolerance);
  EXPECT_EQ(verification.devices[0].real.allocations, 0U);
  EXPECT_FALSE(verification.devices[1].difference);
}

}  // namespace
}  // namespace tidemark
