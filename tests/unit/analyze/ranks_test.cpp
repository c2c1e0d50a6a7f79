#include "analyze/usage/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using testing::kCpu;
using testing::kGpu;
using testing::kGpu1;
using testing::Scenario;

RankRow row(std::size_t index, std::optional<std::int32_t> rank, std::int64_t pid, std::uint64_t peak) {
  RankRow row;
  row.index = index;
  row.recording.process.rank = rank;
  row.recording.process.pid = pid;
  row.device = kGpu;
  row.peak_allocated_bytes = peak;
  return row;
}

std::vector<std::size_t> order_of(const RankComparison& ranks) {
  std::vector<std::size_t> order;
  for (const RankRow& row : ranks.rows) order.push_back(row.index);
  return order;
}

TEST(Ranks, HaveMainProcessesFirst) {
  std::vector<RankRow> rows = {row(0, 1, 11, 1), row(1, 0, 21, 1), row(2, 0, 20, 1), row(3, {}, 5, 1),
                               row(4, 0, 22, 1)};
  rows[1].recording.process.parent_pid = 20;  // the name of its file sorts before its parent's
  rows[4].recording.process.parent_pid = 7;   // of a process that was not recorded
  rows[4].recording.is_worker = true;
  const RankComparison ranks = compare_ranks(rows);
  EXPECT_THAT(order_of(ranks), ElementsAre(2, 1, 4, 0, 3));
  EXPECT_FALSE(ranks.rows[0].child);
  EXPECT_TRUE(ranks.rows[1].child);
  EXPECT_TRUE(ranks.rows[2].child);
}

// Median 1000; deviations 0, 10, 10, 20, 500: their median 10, three scaled ones 44.478, 5% of the median 50.
TEST(Ranks, AreOutliersBeyondFivePercentAndThreeDeviations) {
  const RankComparison ranks =
      compare_ranks({row(0, 0, 1, 1000), row(1, 1, 2, 1010), row(2, 2, 3, 990), row(3, 3, 4, 980), row(4, 4, 5, 1500)});
  ASSERT_EQ(ranks.groups.size(), 1U);
  EXPECT_EQ(ranks.groups[0].median_bytes, 1000U);
  EXPECT_EQ(ranks.groups[0].limit_bytes, 50U);
  EXPECT_DOUBLE_EQ(*ranks.rows[3].difference, -0.02);
  EXPECT_FALSE(ranks.rows[3].outlier);
  EXPECT_DOUBLE_EQ(*ranks.rows[4].difference, 0.5);
  EXPECT_TRUE(ranks.rows[4].outlier);
}

// Deviations 0, 0, 100, 100, 200: their median is 100, three scaled ones 444: no outlier among widely different values.
TEST(Ranks, HaveNoOutliersIfAllDiffer) {
  const RankComparison ranks = compare_ranks(
      {row(0, 0, 1, 1000), row(1, 1, 2, 1100), row(2, 2, 3, 900), row(3, 3, 4, 1200), row(4, 4, 5, 1000)});
  EXPECT_EQ(ranks.groups[0].limit_bytes, 444U);
  for (const RankRow& each : ranks.rows) EXPECT_FALSE(each.outlier);
}

TEST(Ranks, AreComparedWithThoseOfTheirKind) {
  std::vector<RankRow> rows = {row(0, 0, 1, 1000), row(1, 1, 2, 3000), row(2, 0, 3, 10), row(3, 1, 4, 10)};
  rows[2].recording.is_worker = rows[3].recording.is_worker = true;
  rows[2].device = rows[3].device = kCpu;
  const RankComparison ranks = compare_ranks(rows);
  ASSERT_EQ(ranks.groups.size(), 2U);
  EXPECT_EQ(ranks.groups[0].median_bytes, 2000U) << "of two, the middle";
  EXPECT_EQ(ranks.groups[1].median_bytes, 10U);
  EXPECT_DOUBLE_EQ(*ranks.rows[0].difference, -0.5);
  EXPECT_FALSE(ranks.rows[0].outlier) << "of two, none can be told to be the odd one";
}

Summary summary_of(const Scenario& scenario) {
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  return *analyze_summary(overview, symbols, {});
}

TEST(RankRows, AreOfTheGpuThatHeldMost) {
  Scenario scenario;
  scenario.allocate(1, "host", 5000, kCpu);
  scenario.allocate(2, "a", 100, kGpu);
  scenario.allocate(3, "b", 300, kGpu1);
  const RankRow row = rank_row(7, summary_of(scenario));
  EXPECT_EQ(row.index, 7U);
  EXPECT_EQ(row.device, kGpu1);
  EXPECT_EQ(row.peak_allocated_bytes, 300U);
  EXPECT_FALSE(row.out_of_memory);
  EXPECT_EQ(row.device_used_bytes, std::nullopt);
}

// A checkpoint that was loaded to the device that it was saved from.
TEST(Ranks, OnTheGpuOfAnotherOne) {
  Scenario scenario;
  scenario.allocate(1, "model", 300, kGpu1);
  scenario.allocate(2, "checkpoint", 100, kGpu, scenario.stack({scenario.python("load", "train.py", 9)}));
  const RankRow stranger = rank_row(1, summary_of(scenario));
  ASSERT_EQ(stranger.other_gpus.size(), 1U);
  EXPECT_EQ(stranger.other_gpus[0].device, kGpu);
  EXPECT_EQ(stranger.other_gpus[0].peak_allocated_bytes, 100U);
  EXPECT_EQ(stranger.other_gpus[0].stack.frames.front().function, "load");
  std::vector<RankRow> rows = {row(0, 0, 20, 300), stranger};
  rows[1].recording.process.rank = 1;
  EXPECT_EQ(compare_ranks(rows).rows[1].other_gpus[0].rank, 0);
  rows[0].recording.process.hostname = "elsewhere";
  EXPECT_EQ(compare_ranks(rows).rows[1].other_gpus[0].rank, std::nullopt);
  rows[0].recording.process.hostname = {};
  rows.push_back(row(2, 2, 22, 300));  // each rank numbers its own GPU from 0
  EXPECT_EQ(compare_ranks(rows).rows[1].other_gpus[0].rank, std::nullopt);
}

TEST(RankRows, AreOfTheCpuWithoutAGpu) {
  Scenario scenario;
  scenario.allocate(1, "host", 5000, kCpu);
  EXPECT_EQ(rank_row(0, summary_of(scenario)).device, kCpu);
  EXPECT_EQ(rank_row(0, summary_of(Scenario())).device, std::nullopt);
}

TEST(RecordingInfos, KnowDataLoaderWorkers) {
  const auto is_worker = [](const char* file) {
    Scenario scenario;
    scenario.allocate(1, "a", 1, kCpu, scenario.stack({scenario.python("_worker_loop", file, 308)}));
    return summary_of(scenario).recording.is_worker;
  };
  EXPECT_TRUE(is_worker("/venv/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py"));
  EXPECT_FALSE(is_worker("/home/me/worker.py"));
}

}  // namespace
}  // namespace tidemark
