#include "trace/live_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace tidemark {
namespace {

constexpr Device kCpu = {DeviceType::cpu, 0};
constexpr Device kGpu = {DeviceType::cuda, 0};

Event make(EventKind kind, std::uint64_t time_ns, Device device = {}, std::uint64_t address = 0,
           std::uint64_t size = 0) {
  Event event;
  event.kind = kind;
  event.time_ns = time_ns;
  event.device = device;
  event.address = address;
  event.size = size;
  return event;
}

Event with_totals(Event event, std::uint64_t allocated, std::uint64_t reserved) {
  event.has_totals = true;
  event.total_allocated = allocated;
  event.total_reserved = reserved;
  return event;
}

std::vector<Event> lead_in(const LiveBlocks& blocks, std::uint64_t begin_ns) {
  std::vector<Event> events;
  blocks.lead_in(begin_ns, [&](const Event& event) { events.push_back(event); });
  return events;
}

TEST(LiveBlocks, GivesWhatIsAliveInTheOrderOfItsAllocation) {
  LiveBlocks blocks;
  blocks.add(make(EventKind::allocate, 10, kCpu, 0x1000, 1));
  blocks.add(make(EventKind::allocate, 20, kCpu, 0x2000, 2));
  blocks.add(make(EventKind::allocate, 30, kGpu, 0x1000, 4));
  blocks.add(make(EventKind::free, 40, kCpu, 0x1000));
  blocks.add(make(EventKind::allocate, 50, kCpu, 0x3000, 8));
  blocks.add(make(EventKind::free, 60, kCpu, 0x9000));          // never seen
  blocks.add(make(EventKind::allocate, 70, kCpu, 0x2000, 16));  // its free was not seen
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  blocks.for_each([&](const Event& event) { found.emplace_back(event.time_ns, event.size); });
  EXPECT_EQ(found, (decltype(found){{30, 4}, {50, 8}, {70, 16}}));
  EXPECT_EQ(blocks.count(), 3U);
}

TEST(LiveBlocks, LeadInPausesUntilTheBeginningWithTheTotalsOfNow) {
  LiveBlocks blocks;
  blocks.add(with_totals(make(EventKind::allocate, 10, kGpu, 0x1000, 512), 512, 2048));
  blocks.add(make(EventKind::allocate, 15, kCpu, 0x1000, 7));
  blocks.add(with_totals(make(EventKind::allocate, 20, kGpu, 0x2000, 512), 1024, 2048));
  blocks.add(with_totals(make(EventKind::allocate, 30, kGpu, 0x3000, 512), 1536, 4096));
  blocks.add(with_totals(make(EventKind::free, 40, kGpu, 0x3000), 1024, 4096));
  const std::vector<Event> events = lead_in(blocks, 50);
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0].kind, EventKind::pause);
  EXPECT_EQ(events[0].time_ns, 0U);
  EXPECT_EQ(events[1].time_ns, 10U);
  EXPECT_FALSE(events[1].has_totals);
  EXPECT_EQ(events[2].time_ns, 15U);
  EXPECT_FALSE(events[2].has_totals);
  EXPECT_EQ(events[3].time_ns, 20U);
  EXPECT_TRUE(events[3].has_totals);
  EXPECT_EQ(events[3].total_allocated, 1024U);
  EXPECT_EQ(events[3].total_reserved, 4096U);
  EXPECT_EQ(events[4].kind, EventKind::resume);
  EXPECT_EQ(events[4].time_ns, 50U);
}

TEST(LiveBlocks, LeadInOfAPausedProgramEndsWithItsPause) {
  LiveBlocks blocks;
  blocks.add(make(EventKind::allocate, 10, kCpu, 0x1000, 1));
  blocks.add(make(EventKind::pause, 20));
  EXPECT_TRUE(blocks.paused());
  const std::vector<Event> events = lead_in(blocks, 50);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[2].kind, EventKind::resume);
  EXPECT_EQ(events[3].kind, EventKind::pause);
  EXPECT_EQ(events[3].time_ns, 50U);
  blocks.add(make(EventKind::resume, 60));
  EXPECT_EQ(lead_in(blocks, 70).back().kind, EventKind::resume);
}

TEST(LiveBlocks, AgreesWithAMapOnRandomEvents) {
  std::mt19937_64 random(16);
  LiveBlocks blocks;
  std::map<std::pair<std::int8_t, std::uint64_t>, std::uint64_t> expected;  // (device, address) -> time
  for (std::uint64_t time = 1; time <= 20'000; ++time) {
    const Device device = {DeviceType::cuda, static_cast<std::int8_t>(random() % 3)};
    const std::uint64_t address = 0x1000 * (random() % 500);
    const bool allocates = random() % 2 == 0;
    blocks.add(make(allocates ? EventKind::allocate : EventKind::free, time, device, address, time));
    if (allocates) {
      expected[{device.index, address}] = time;
    } else {
      expected.erase({device.index, address});
    }
  }
  std::map<std::pair<std::int8_t, std::uint64_t>, std::uint64_t> found;
  std::uint64_t last = 0;
  blocks.for_each([&](const Event& event) {
    EXPECT_LT(last, event.time_ns);
    last = event.time_ns;
    found[{event.device.index, event.address}] = event.time_ns;
  });
  EXPECT_EQ(found, expected);
  EXPECT_EQ(blocks.count(), expected.size());
}

}  // namespace
}  // namespace tidemark
