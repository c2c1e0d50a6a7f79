#include "monitor/memory_growth.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kPerMinute = static_cast<double>(kMiB);

// A process on one device whose memory grows by this much a second, for four minutes by default.
MachineState growing(std::uint64_t bytes_per_second, std::uint64_t seconds = 240) {
  MachineState state;
  state.devices.emplace_back().key = "0";
  WatchedProcess& process = state.processes.emplace_back();
  process.pid = 7;
  ProcessOnDevice& on = process.devices.emplace_back();
  for (std::uint64_t second = 0; second < seconds; ++second) {
    on.used.add(second * 1'000'000'000, 100 * kMiB + second * bytes_per_second);
  }
  return state;
}

TEST(MemoryGrowth, RateOfASteadyGrowth) {
  const auto found = memory_growth(growing(kMiB), {}, 10 * kPerMinute);
  ASSERT_EQ(found.size(), 1U) << "what has no samples is not there";
  EXPECT_EQ(found[0].memory, GrowingMemory::process_device);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::growing);
  EXPECT_NEAR(found[0].bytes_per_minute(), 60 * kPerMinute, kPerMinute);
  EXPECT_EQ(found[0].first_bytes, 100 * kMiB);
  EXPECT_EQ(found[0].last_bytes, 339 * kMiB);
}

TEST(MemoryGrowth, SlowerThanTheThreshold) {
  const auto found = memory_growth(growing(kMiB), {}, 100 * kPerMinute);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::below_threshold);
}

TEST(MemoryGrowth, GrowthOverAMinuteMayEnd) {
  const auto found = memory_growth(growing(kMiB, 60), {}, 10 * kPerMinute);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::uncertain);
  ASSERT_TRUE(found[0].growth.has_value());
  EXPECT_EQ(found[0].growth->classification, GrowthClass::too_few);
  EXPECT_NEAR(found[0].bytes_per_minute(), 60 * kPerMinute, 2 * kPerMinute);
}

TEST(MemoryGrowth, SteadyMemoryHasNoGrowth) {
  const auto found = memory_growth(growing(0), {}, 0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::none);
}

TEST(MemoryGrowth, OneSampleIsUnknown) {
  MachineState state;
  state.processes.emplace_back().rss.add(0, 5);
  const auto found = memory_growth(state, {}, 0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].memory, GrowingMemory::process_host);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::unknown);
}

// 12 samples, and 30 steps in each of which two stacks keep 1 MiB and one frees its block.
RecordedProcess leaking() {
  RecordedProcess process;
  RecordedDevice& device = process.devices.emplace_back();
  GrowthDetector detector;
  for (std::uint64_t second = 0; second < 12; ++second) {
    device.allocated.add(second * 1'000'000'000, second * kMiB);
    detector.add({second * 1'000'000'000, second * kMiB, {}, {}});
  }
  for (std::uint64_t step = 0; step < 30; ++step) {
    const SourceBytes held[] = {{1, (1 + step) * kMiB}, {2, (5 + step) * kMiB}, {3, (step % 3) * 100 * kMiB}};
    detector.end_step(step * 500'000'000, held);
  }
  process.growths.emplace_back(device.device, detector.assess());
  return process;
}

TEST(MemoryGrowth, StepsDecideOverWhatTheFrameworkHasAllocated) {
  const auto found = memory_growth(MachineState(), {leaking()}, 10 * kPerMinute);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].memory, GrowingMemory::allocated);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::growing);
  EXPECT_DOUBLE_EQ(found[0].growth->bytes_per_step->value, 2.0 * kMiB);
  EXPECT_NEAR(found[0].bytes_per_minute(), 240 * kPerMinute, 1);
}

}  // namespace
}  // namespace tidemark
