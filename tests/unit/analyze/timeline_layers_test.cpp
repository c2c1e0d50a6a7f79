// Layers of a timeline besides the allocator: libraries' driver memory and the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/timeline/timeline.h"
#include "unit/analyze/ledger_support.h"

namespace tidemark::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Timeline timeline_of(const Scenario& scenario, std::size_t points = 2000) {
  const Store store = scenario.store();
  const Symbols symbols(store.definitions);
  return *analyze_timeline(store, symbols, {std::nullopt, points});
}

// Time, allocated, reserved, driver.
using Row = std::tuple<std::uint64_t, std::uint64_t, std::optional<std::uint64_t>, std::optional<std::uint64_t>>;

std::vector<Row> rows_of(const TimelineSeries& series) {
  std::vector<Row> rows;
  for (const TimelinePoint& point : series.points) {
    rows.emplace_back(point.time_ns, point.allocated_bytes, point.reserved_bytes, point.driver_bytes);
  }
  return rows;
}

// NCCL takes 25 and 15, the program's own library 5; the allocator's 620, managed and page-locked memory do not count.
TEST(TimelineDriver, EqualsTheLibrariesMemoryAtEveryPoint) {
  Scenario scenario = everything();
  scenario.definitions.end = EndInfo{50, true};
  const Timeline timeline = timeline_of(scenario);
  ASSERT_EQ(timeline.series.size(), 1U);
  const TimelineSeries& series = timeline.series[0];
  EXPECT_THAT(rows_of(series),
              ElementsAre(Row(11, 0, {}, 25), Row(12, 0, {}, 40), Row(13, 0, {}, 45), Row(20, 560, 600, 45),
                          Row(30, 560, 600, 20), Row(31, 0, 600, 20), Row(40, 0, 600, 15), Row(50, 0, 600, 15)));
  EXPECT_EQ(series.peak_driver_bytes, 45U);
  EXPECT_EQ(series.peak_driver_at_ns, 13U);
}

TEST(TimelineDriver, IsOfTheSameDeviceAndUnknownWithoutRecordedCalls) {
  Scenario scenario;
  const StackId nccl = scenario.stack({scenario.native("/lib/libnccl.so.2", 1)});
  scenario.allocate(1, "a", 10, kGpu);
  scenario.allocate(2, "b", 20, kGpu1);
  scenario.allocate(3, "c", 30);
  EXPECT_EQ(timeline_of(scenario).series.at(0).points.back().driver_bytes, std::nullopt);
  EXPECT_EQ(timeline_of(scenario).series.at(0).peak_driver_bytes, std::nullopt);
  scenario.allocate(4, "n", 40, {DeviceType::cuda_driver, 1}, nccl);
  const Timeline timeline = timeline_of(scenario);
  ASSERT_EQ(timeline.series.size(), 3U);
  EXPECT_EQ(timeline.series[0].peak_driver_bytes, 0U);
  EXPECT_EQ(timeline.series[0].peak_driver_at_ns, std::nullopt);
  EXPECT_EQ(timeline.series[1].peak_driver_bytes, 40U);
  EXPECT_EQ(timeline.series[1].points.back().driver_bytes, 40U);
  EXPECT_EQ(timeline.series[1].points.back().allocated_bytes, 20U);
  EXPECT_EQ(timeline.series[2].peak_driver_bytes, std::nullopt) << "the CPU has none";
}

// The kept ones of many points have the values of a walk over all events at their times.
TEST(TimelineDriver, IsExactAtEachKeptPoint) {
  std::mt19937 random(11);
  Scenario scenario;
  const StackId nccl = scenario.stack({scenario.native("/lib/libnccl.so.2", 1)});
  const StackId torch = scenario.stack({scenario.native("/lib/libc10_cuda.so", 1)});
  scenario.totals(kGpu, 0, 0);
  std::vector<std::uint64_t> driver = {0};     // by time
  std::vector<std::uint64_t> allocated = {0};  // by time
  std::vector<std::pair<std::string, std::uint64_t>> live;
  for (std::uint64_t time = 1; time <= 6000; ++time) {
    driver.push_back(driver.back());
    allocated.push_back(allocated.back());
    const std::string name = std::to_string(time);
    const std::uint64_t size = 1 + random() % 1000;
    switch (random() % 4) {
      case 0:
        scenario.allocate(time, name, size, kDriver, nccl);
        live.emplace_back(name, size);
        driver.back() += size;
        break;
      case 1:
        scenario.allocate(time, name, size, kDriver, torch);
        break;
      case 2:
        scenario.allocate(time, name, size, kGpu);
        allocated.back() += size;
        break;
      default:
        if (live.empty()) break;
        std::swap(live[random() % live.size()], live.back());
        scenario.free(time, live.back().first);
        driver.back() -= live.back().second;
        live.pop_back();
    }
  }
  const TimelineSeries series = timeline_of(scenario, 300).series.at(0);
  EXPECT_LE(series.points.size(), 301U);
  EXPECT_GT(series.points.size(), 100U);
  for (const TimelinePoint& point : series.points) {
    EXPECT_EQ(point.driver_bytes, driver[point.time_ns]) << point.time_ns;
    EXPECT_EQ(point.allocated_bytes, allocated[point.time_ns]) << point.time_ns;
  }
  const auto highest = std::max_element(driver.begin(), driver.end());
  EXPECT_EQ(series.peak_driver_bytes, *highest);
  EXPECT_EQ(series.peak_driver_at_ns, static_cast<std::uint64_t>(highest - driver.begin()));
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs_of(const std::optional<SampledOverTime>& sampled) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
  if (!sampled) return pairs;
  for (const TimedBytes& point : sampled->points) pairs.emplace_back(point.time_ns, point.bytes);
  return pairs;
}

HostSample host(std::uint64_t time_ns, std::optional<std::uint64_t> rss, std::optional<std::uint64_t> pss) {
  HostSample sample;
  sample.time_ns = time_ns;
  sample.rss_bytes = rss;
  sample.pss_bytes = pss;
  return sample;
}

TEST(TimelineHost, HasTheSamplesOfTheProcess) {
  Scenario scenario;
  scenario.allocate(1, "a", 10);
  EXPECT_FALSE(timeline_of(scenario).host);
  scenario.samples.emplace_back(host(2, std::nullopt, std::nullopt));
  EXPECT_FALSE(timeline_of(scenario).host) << "the process had ended, or could not be read";
  scenario.samples.emplace_back(host(5, 100, 90));
  scenario.samples.emplace_back(host(10, 120, std::nullopt));
  scenario.samples.emplace_back(host(15, 110, 95));
  scenario.samples.emplace_back(host(20, std::nullopt, std::nullopt));
  const auto timeline = timeline_of(scenario);
  ASSERT_TRUE(timeline.host);
  EXPECT_THAT(pairs_of(timeline.host->rss), ElementsAre(Pair(5, 100), Pair(10, 120), Pair(15, 110)));
  EXPECT_THAT(pairs_of(timeline.host->pss), ElementsAre(Pair(5, 90), Pair(15, 95)));
  EXPECT_EQ(timeline.host->rss->peak, 120U);
  EXPECT_EQ(timeline.host->rss->peak_at_ns, 10U);
  EXPECT_EQ(timeline.host->rss->end.value_or(0), 110U);
  EXPECT_EQ(timeline.host->pss->peak, 95U);
  EXPECT_EQ(timeline.host->end_ns(), 15U);
}

// An hour at 10 a second, with one sample above all others.
TEST(TimelineHost, KeepsThePeakAndTheEndOfManySamples) {
  Scenario scenario;
  for (std::uint64_t time = 0; time < 36'000; ++time) {
    scenario.samples.emplace_back(host(time * 100, time == 12'345 ? 9999 : time % 1000, std::nullopt));
  }
  const auto timeline = timeline_of(scenario, 100);
  const auto pairs = pairs_of(timeline.host->rss);
  EXPECT_LE(pairs.size(), 101U);
  EXPECT_GT(pairs.size(), 50U);
  EXPECT_THAT(pairs, ::testing::Contains(Pair(1'234'500, 9999)));
  EXPECT_EQ(pairs.back(), std::pair(std::uint64_t{3'599'900}, std::uint64_t{999}));
  EXPECT_TRUE(std::is_sorted(pairs.begin(), pairs.end()));
  EXPECT_FALSE(timeline.host->pss);
}

}  // namespace
}  // namespace tidemark::testing
