#include "analyze/leaks/host_growth.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {
namespace {

constexpr std::uint64_t kHostSecond = 1'000'000'000;

HostSample sample(std::uint64_t second, std::uint64_t anon_bytes) {
  HostSample sample;
  sample.time_ns = second * kHostSecond;
  sample.anon_bytes = anon_bytes;
  return sample;
}

TEST(HostGrowthTest, ExcludesGrowthOfTensors) {
  Scenario scenario;
  scenario.allocate(10 * kHostSecond, "few", 3 * kMiB, kCpu);
  Store store = scenario.store();
  for (std::uint64_t second = 0; second <= 40; ++second) store.samples.add(sample(second, (100 + 10 * second) * kMiB));
  const auto found = find_host_growth(store, 5 * kHostSecond, 70 * kHostSecond);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].of_other_processes);
  EXPECT_EQ(found[0].from_bytes, 150 * kMiB);
  EXPECT_EQ(found[0].from_ns, 5 * kHostSecond);
  EXPECT_EQ(found[0].to_bytes, 500 * kMiB);
  EXPECT_EQ(found[0].to_ns, 40 * kHostSecond);
  EXPECT_EQ(found[0].tensor_bytes, 3 * kMiB);
  EXPECT_NEAR(found[0].bytes_per_second, 10.0 * kMiB, 0.5 * kMiB);
  const auto earlier = find_host_growth(store, 5 * kHostSecond, 20 * kHostSecond);
  ASSERT_EQ(earlier.size(), 1U);
  EXPECT_EQ(earlier[0].to_bytes, 300 * kMiB);
}

// 50 MiB that a step allocates and frees are alive at the first reading, and not at the last one: they hide no growth.
TEST(HostGrowthTest, MemoryWithinAStepIsNoGrowth) {
  Scenario scenario;
  scenario.allocate(4 * kHostSecond, "in a step", 50 * kMiB, kCpu);
  scenario.free(6 * kHostSecond, "in a step");
  scenario.allocate(10 * kHostSecond, "kept", 3 * kMiB, kCpu);
  Store store = scenario.store();
  for (std::uint64_t second = 0; second <= 40; ++second) store.samples.add(sample(second, (100 + 10 * second) * kMiB));
  const auto found = find_host_growth(store, 5 * kHostSecond, 70 * kHostSecond);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tensor_bytes, 3 * kMiB);
}

TEST(HostGrowthTest, TensorsOnTheCpuHaveCallSites) {
  Scenario scenario;
  for (std::uint64_t second = 1; second <= 40; ++second)
    scenario.allocate(second * kHostSecond, std::to_string(second), 9 * kMiB, kCpu);
  Store store = scenario.store();
  for (std::uint64_t second = 0; second <= 40; ++second) store.samples.add(sample(second, (100 + 10 * second) * kMiB));
  EXPECT_TRUE(find_host_growth(store, 5 * kHostSecond, 70 * kHostSecond).empty());
}

TEST(HostGrowthTest, IgnoresStoppedAndSmallGrowth) {
  const Store none = Scenario().store();
  Store stopped = none;
  Store little = none;
  Store few = none;
  for (std::uint64_t second = 0; second <= 40; ++second) {
    stopped.samples.add(sample(second, (100 + 10 * std::min<std::uint64_t>(second, 15)) * kMiB));
    little.samples.add(sample(second, (1000 + second / 2) * kMiB));
    if (second > 34) few.samples.add(sample(second, (100 + 10 * second) * kMiB));
  }
  for (const Store* store : std::initializer_list<const Store*>{&none, &stopped, &little, &few})
    EXPECT_TRUE(find_host_growth(*store, 0, 70 * kHostSecond).empty());
}

// Forked workers copy pages: the job's PSS grows, the process's does not.
TEST(HostGrowthTest, OtherProcessesOfTheJob) {
  Store store = Scenario().store();
  for (std::uint64_t second = 0; second <= 70; ++second) {
    HostSample host = sample(second, 300 * kMiB);
    if (second % 5 == 0) {
      host.pss_bytes = 150 * kMiB;
      host.job_pss_bytes = (530 + 9 * second) * kMiB;
    }
    store.samples.add(host);
  }
  const auto found = find_host_growth(store, 14 * kHostSecond, 70 * kHostSecond);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].of_other_processes);
  EXPECT_EQ(found[0].from_bytes, (530 - 150 + 9 * 15) * kMiB);
  EXPECT_EQ(found[0].to_bytes, (530 - 150 + 9 * 70) * kMiB);
}

// PSS of large processes takes long to read: nine readings at uneven times, of growth that goes on, or of one rise.
TEST(HostGrowthTest, FewReadingsAtUnevenTimes) {
  const auto found = [](std::uint64_t (*bytes)(std::uint64_t second)) {
    Store store = Scenario().store();
    for (const std::uint64_t second : {48U, 85U, 112U, 133U, 157U, 179U, 200U, 211U, 220U}) {
      HostSample host = sample(second, 300 * kMiB);
      host.pss_bytes = 150 * kMiB;
      host.job_pss_bytes = bytes(second);
      store.samples.add(host);
    }
    return find_host_growth(store, 23 * kHostSecond, 230 * kHostSecond);
  };
  const auto steady = found([](std::uint64_t second) { return (300 + second) * kMiB; });
  ASSERT_EQ(steady.size(), 1U);
  EXPECT_NEAR(steady[0].bytes_per_second, kMiB, 0.05 * kMiB);
  EXPECT_TRUE(found([](std::uint64_t second) { return (second < 140 ? 300 : 500) * kMiB; }).empty());
}

}  // namespace
}  // namespace tidemark::testing
