#include "analyze/timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "unit/store/store_scenario.h"

namespace tidemark {

bool operator==(const TimelinePoint& left, const TimelinePoint& right) {
  return left.time_ns == right.time_ns && left.allocated_bytes == right.allocated_bytes &&
         left.reserved_bytes == right.reserved_bytes;
}

namespace {

using ::testing::ElementsAre;
using testing::kCpu;
using testing::kGpu;
using testing::kGpu1;
using testing::Scenario;

Timeline timeline_of(const Scenario& scenario, std::size_t points = 2000) {
  const Store store = scenario.store();
  const Symbols symbols(store.definitions);
  return *analyze_timeline(store, symbols, {std::nullopt, points});
}

TimelinePoint at(std::uint64_t time_ns, std::uint64_t allocated, std::optional<std::uint64_t> reserved = std::nullopt) {
  return {time_ns, allocated, reserved, std::nullopt};
}

TEST(Timeline, FollowsEachEventWhenThereAreFew) {
  Scenario scenario;
  scenario.allocate(1000, "a", 100);
  scenario.allocate(2000, "b", 50);
  scenario.free(3000, "a");
  scenario.definitions.end = EndInfo{4000, true};
  EXPECT_THAT(timeline_of(scenario).series.at(0).points,
              ElementsAre(at(1000, 100), at(2000, 150), at(3000, 50), at(4000, 50)));
}

TEST(Timeline, UsesTheAllocatorsTotals) {
  Scenario scenario;
  scenario.totals(kGpu, 1000, 2048);
  scenario.allocate(1000, "a", 500, kGpu);
  scenario.allocate(1500, "cpu", 77);
  scenario.free_unknown(2000, kGpu, 300);
  scenario.totals(kGpu, 1200, 4096);
  scenario.allocate(3000, "b", 400, kGpu);
  scenario.definitions.end = EndInfo{4000, true};
  const Timeline timeline = timeline_of(scenario);
  ASSERT_EQ(timeline.series.size(), 2U);
  EXPECT_THAT(timeline.series[0].points,
              ElementsAre(at(1000, 1500, 2048), at(2000, 1200, 2048), at(3000, 1600, 4096), at(4000, 1600, 4096)));
  EXPECT_THAT(timeline.series[1].points, ElementsAre(at(1500, 77), at(4000, 77)));
}

TEST(Timeline, KeepsExtremesWhenThereAreMany) {
  std::mt19937 random(7);
  Scenario scenario;
  scenario.totals(kGpu1, 0, 0);
  std::uint64_t allocated = 0;
  std::uint64_t peak = 0;
  std::vector<std::string> alive;
  for (std::uint64_t step = 1; step <= 20'000; ++step) {
    if (!alive.empty() && random() % 100 < 49) {
      scenario.free(step * 1000, alive.back());
      alive.pop_back();
      allocated -= 64;
      continue;
    }
    alive.push_back(std::to_string(step));
    allocated += 64;
    scenario.totals(kGpu1, allocated - 64, random() % 1'000'000);
    scenario.allocate(step * 1000, alive.back(), 64, kGpu1);
    peak = std::max(peak, allocated);
  }
  const TimelineSeries series = timeline_of(scenario, 400).series.at(0);
  EXPECT_LE(series.points.size(), 400U);
  EXPECT_GT(series.points.size(), 200U);
  const auto highest = std::max_element(
      series.points.begin(), series.points.end(),
      [](const auto& left, const auto& right) { return left.allocated_bytes < right.allocated_bytes; });
  EXPECT_EQ(highest->allocated_bytes, peak);
  EXPECT_EQ(highest->time_ns, series.peak_allocated_at_ns);
  std::uint64_t most_reserved = 0;
  for (const TimelinePoint& point : series.points) most_reserved = std::max(most_reserved, *point.reserved_bytes);
  EXPECT_EQ(most_reserved, series.peak_reserved_bytes);
  EXPECT_EQ(series.points.back().allocated_bytes, allocated);
  EXPECT_TRUE(std::is_sorted(series.points.begin(), series.points.end(),
                             [](const auto& left, const auto& right) { return left.time_ns < right.time_ns; }));
}

TEST(Timeline, ListsFailedRequests) {
  Scenario scenario;
  scenario.allocate(10, "a", 1);
  scenario.out_of_memory(20, 1 << 30, kCpu);
  const Timeline timeline = timeline_of(scenario);
  ASSERT_EQ(timeline.out_of_memory.size(), 1U);
  EXPECT_EQ(timeline.out_of_memory[0].requested_bytes, 1U << 30);
}

}  // namespace
}  // namespace tidemark
