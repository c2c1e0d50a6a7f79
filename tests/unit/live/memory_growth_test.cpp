#include "live/memory_growth.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kPerMinute = static_cast<double>(kMiB);

// A process on one device whose memory grows by so much a second, for two minutes.
MachineState growing(std::uint64_t bytes_per_second) {
  MachineState state;
  state.devices.emplace_back().key = "0";
  WatchedProcess& process = state.processes.emplace_back();
  process.pid = 7;
  ProcessOnDevice& on = process.devices.emplace_back();
  for (std::uint64_t second = 0; second < 120; ++second) {
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
  EXPECT_EQ(found[0].last_bytes, 219 * kMiB);
}

TEST(MemoryGrowth, SlowerThanTheThreshold) {
  const auto found = memory_growth(growing(kMiB), {}, 100 * kPerMinute);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::below_threshold);
}

TEST(MemoryGrowth, NoGrowthHasNoVerdictOfGrowth) {
  const auto found = memory_growth(growing(0), {}, 0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::none);
}

TEST(MemoryGrowth, OneSampleSaysNothing) {
  MachineState state;
  state.processes.emplace_back().rss.add(0, 5);
  const auto found = memory_growth(state, {}, 0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].memory, GrowingMemory::process_host);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::unknown);
}

TEST(MemoryGrowth, WhatTheFrameworkHasAllocated) {
  std::vector<RecordedProcess> recorded(1);
  RecordedDevice& device = recorded[0].devices.emplace_back();
  for (std::uint64_t second = 0; second < 120; ++second) device.allocated.add(second * 1'000'000'000, second * kMiB);
  const auto found = memory_growth({}, recorded, 10 * kPerMinute);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].memory, GrowingMemory::allocated);
  EXPECT_EQ(found[0].verdict, GrowthVerdict::growing);
}

}  // namespace
}  // namespace tidemark
