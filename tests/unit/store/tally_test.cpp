#include "store/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::kGpu1;
using testing::Scenario;

TEST(Tally, AddsUpACpuDeviceFromItsBlocks) {
  Scenario scenario;
  scenario.allocate(10, "a", 100);
  scenario.allocate(20, "b", 50);
  scenario.free(30, "a");
  scenario.allocate(40, "c", 60);
  const Overview overview = scenario.overview();
  ASSERT_EQ(overview.devices.size(), 1U);
  const DeviceSummary& cpu = overview.devices[0];
  EXPECT_EQ(cpu.allocation_count, 3U);
  EXPECT_EQ(cpu.free_count, 1U);
  EXPECT_EQ(cpu.total_bytes_allocated, 210U);
  EXPECT_EQ(cpu.peak_allocated_bytes, 150U);
  EXPECT_EQ(cpu.peak_allocated_at_ns, 20U);
  EXPECT_EQ(cpu.peak_count, 2U);
  EXPECT_EQ(cpu.live_allocated_bytes, 110U);
  EXPECT_EQ(cpu.live_count, 2U);
  EXPECT_EQ(overview.end_ns, 40U);
}

TEST(Tally, KeepsTotalsMissingOnTheCpuUnknown) {
  Scenario scenario;
  scenario.allocate(10, "a", 100);
  const DeviceSummary cpu = scenario.overview().devices[0];
  EXPECT_FALSE(cpu.has_totals);
  EXPECT_EQ(cpu.peak_reserved_bytes, std::nullopt);
  EXPECT_EQ(cpu.end_reserved_bytes, std::nullopt);
  EXPECT_EQ(cpu.baseline_bytes, std::nullopt);
}

TEST(Tally, TakesPeaksFromTheAllocatorsTotals) {
  Scenario scenario;
  scenario.totals(kGpu, 1000, 4096);  // 1000 bytes were there before the recording
  scenario.allocate(10, "a", 500, kGpu);
  scenario.free_unknown(20, kGpu, 200);  // part of those 1000
  scenario.allocate(30, "b", 400, kGpu);
  scenario.free(40, "a");
  const DeviceSummary gpu = scenario.overview().devices[0];
  EXPECT_EQ(gpu.baseline_bytes, 1000U);
  EXPECT_EQ(gpu.peak_allocated_bytes, 1700U);  // 1500, 1300, 1700, 1200
  EXPECT_EQ(gpu.peak_allocated_at_ns, 30U);
  EXPECT_EQ(gpu.peak_recorded_bytes, 900U);
  EXPECT_EQ(gpu.live_allocated_bytes, 1200U);
  EXPECT_EQ(gpu.live_recorded_bytes, 400U);
  EXPECT_EQ(gpu.unmatched_free_count, 1U);
  EXPECT_EQ(gpu.free_count, 2U);
}

TEST(Tally, FollowsReservedBytes) {
  Scenario scenario;
  scenario.totals(kGpu, 0, 2048);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.totals(kGpu, 500, 8192);
  scenario.allocate(20, "b", 500, kGpu);
  scenario.totals(kGpu, 1000, 1024);
  scenario.free(30, "b");
  const DeviceSummary gpu = scenario.overview().devices[0];
  EXPECT_EQ(gpu.peak_reserved_bytes, 8192U);
  EXPECT_EQ(gpu.peak_reserved_at_ns, 20U);
  EXPECT_EQ(gpu.end_reserved_bytes, 1024U);
}

TEST(Tally, TracksReservedBytesAfterARelease) {
  Scenario scenario;
  scenario.totals(kGpu, 0, 8192);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.free(20, "a");
  scenario.totals(kGpu, 0, 0);
  scenario.release(30, kGpu);
  const DeviceSummary gpu = scenario.overview().devices[0];
  EXPECT_EQ(gpu.end_reserved_bytes, 0U);
  EXPECT_EQ(gpu.live_allocated_bytes, 0U);
  EXPECT_EQ(gpu.peak_reserved_bytes, 8192U);
  EXPECT_EQ(gpu.free_count, 1U);
  EXPECT_EQ(gpu.unmatched_free_count, 0U);
}

TEST(Tally, KeepsTheStacksOfEachDevicesOwnPeak) {
  Scenario scenario;
  const StackId one = scenario.stack({scenario.python("one", "a.py", 1)});
  const StackId two = scenario.stack({scenario.python("two", "a.py", 2)});
  scenario.allocate(10, "a", 100, kGpu, one);
  scenario.allocate(11, "b", 10, kGpu1, one);
  scenario.allocate(12, "c", 40, kGpu, two);  // peak of cuda:0: one 100, two 40
  scenario.free(13, "a");
  scenario.allocate(14, "d", 70, kGpu, one);   // 110
  scenario.allocate(15, "e", 90, kGpu1, two);  // peak of cuda:1: one 10, two 90
  const Overview overview = scenario.overview();
  std::map<std::pair<int, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> held;
  for (const StackUsage& usage : overview.stacks_at_peak) {
    held[{usage.device, usage.stack.value}] = {usage.bytes, usage.blocks};
  }
  using Held = decltype(held);
  EXPECT_EQ(held, (Held{{{0, one.value}, {100, 1}},
                        {{0, two.value}, {40, 1}},
                        {{1, one.value}, {10, 1}},
                        {{1, two.value}, {90, 1}}}));
}

TEST(Tally, KeepsPausesUpToTheEnd) {
  Scenario scenario;
  scenario.mark(EventKind::pause, 100);
  scenario.mark(EventKind::resume, 150);
  scenario.allocate(200, "a", 1);
  scenario.mark(EventKind::pause, 300);
  scenario.definitions.end = EndInfo{1000, true};
  const Overview overview = scenario.overview();
  EXPECT_THAT(overview.pauses, ::testing::ElementsAre(Pause{100, 150}, Pause{300, 1000}));
  EXPECT_EQ(overview.end_ns, 1000U);
}

TEST(Tally, KeepsTheTimeWhereTheClockStepsBack) {
  Scenario scenario;
  scenario.allocate(100, "a", 1);
  scenario.allocate(90, "b", 1);
  scenario.definitions.end = EndInfo{95, true};
  const Overview overview = scenario.overview();
  EXPECT_EQ(overview.devices[0].peak_allocated_at_ns, 100U);
  EXPECT_EQ(overview.end_ns, 100U);
}

TEST(Tally, KeepsFailedRequests) {
  Scenario scenario;
  scenario.totals(kGpu, 700, 800);
  scenario.out_of_memory(50, 4096, kGpu);
  scenario.out_of_memory(60, 1 << 20, kCpu);
  const Overview overview = scenario.overview();
  ASSERT_EQ(overview.out_of_memory.size(), 2U);
  EXPECT_EQ(overview.out_of_memory[0].requested, 4096U);
  EXPECT_EQ(overview.out_of_memory[0].allocated, 700U);
  EXPECT_EQ(overview.out_of_memory[0].reserved, 800U);
  EXPECT_EQ(overview.out_of_memory[1].allocated, std::nullopt);
  EXPECT_EQ(overview.out_of_memory[1].device_free, std::nullopt);
  EXPECT_EQ(overview.devices[0].out_of_memory_count, 1U);
}

TEST(Tally, CountsEventsOfTooManyDevicesAsLost) {
  Scenario scenario;
  for (int device = 0; device < 300; ++device) {
    const Device odd = {static_cast<DeviceType>(20 + device / 100), static_cast<std::int8_t>(device % 100)};
    scenario.allocate(1, std::to_string(device), 8, odd);
  }
  const Overview overview = scenario.overview();
  EXPECT_EQ(overview.devices.size(), kMaxDevices);
  ASSERT_EQ(overview.definitions.losses.size(), 1U);
  EXPECT_EQ(overview.definitions.losses[0].count, 300U - kMaxDevices);
}

// The lazily saved peaks, against copying everything at each new peak.
TEST(Tally, AgreesWithASimplerWayOnRandomEvents) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    Scenario scenario;
    std::vector<StackId> stacks = {StackId{}};
    for (std::uint32_t index = 0; index < 5; ++index)
      stacks.push_back(scenario.stack({scenario.python("f", "f.py", index)}));
    std::map<std::string, std::pair<std::uint32_t, std::uint64_t>> alive;
    std::map<std::uint32_t, std::uint64_t> now;
    std::map<std::uint32_t, std::uint64_t> at_peak;
    std::uint64_t total = 0;
    std::uint64_t peak = 0;
    for (std::uint32_t step = 0; step < 500; ++step) {
      if (!alive.empty() && random() % 2 == 0) {
        auto victim = std::next(alive.begin(), static_cast<std::ptrdiff_t>(random() % alive.size()));
        scenario.free(step, victim->first);
        now[victim->second.first] -= victim->second.second;
        total -= victim->second.second;
        alive.erase(victim);
        continue;
      }
      const StackId stack = stacks[random() % stacks.size()];
      const std::uint64_t size = 1 + random() % 1000;
      const std::string name = std::to_string(step);
      scenario.allocate(step, name, size, kCpu, stack);
      alive[name] = {stack.value, size};
      now[stack.value] += size;
      total += size;
      if (total <= peak) continue;
      peak = total;
      at_peak = now;
    }
    const Overview overview = scenario.overview();
    EXPECT_EQ(overview.devices[0].peak_allocated_bytes, peak);
    std::map<std::uint32_t, std::uint64_t> held;
    for (const StackUsage& usage : overview.stacks_at_peak) held[usage.stack.value] = usage.bytes;
    std::erase_if(at_peak, [](const auto& entry) { return entry.second == 0; });
    EXPECT_EQ(held, at_peak) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tidemark
