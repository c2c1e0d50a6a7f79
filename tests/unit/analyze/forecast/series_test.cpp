// The parts of the forecast: cells, change points, periods, growth of peaks.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analyze/common/trend.h"
#include "analyze/forecast/change_points.h"
#include "analyze/forecast/peak_growth.h"
#include "analyze/forecast/usage_history.h"

namespace tidemark {
namespace {

UsageSample sample(std::uint64_t time_ns, std::uint64_t bytes) {
  return {time_ns, bytes, std::nullopt, std::nullopt};
}

TEST(UsageHistoryTest, JoinsOldSamplesAndKeepsTheirExtremes) {
  UsageHistory history;
  for (std::uint64_t index = 0; index < 100'000; ++index)
    history.add(sample(index, index == 17 ? 5000 : 100 + index % 7));
  EXPECT_EQ(history.samples(), 100'000u);
  EXPECT_LT(history.span_count(), 128u * 11);  // 2^10 * 128 > 100,000
  const auto spans = history.spans();
  EXPECT_EQ(spans.front().from_ns, 0u);
  EXPECT_EQ(spans.front().peak_bytes, 5000u);
  EXPECT_EQ(spans.front().floor_bytes, 100u);
  std::uint64_t samples = 0;
  for (std::size_t index = 0; index < spans.size(); ++index) {
    samples += spans[index].samples;
    if (index > 0) {
      EXPECT_GT(spans[index].from_ns, spans[index - 1].to_ns);
    }
  }
  EXPECT_EQ(samples, 100'000u);
}

TEST(UsageHistoryTest, RestartsWhenStepsDecreaseAndDropsLateSamples) {
  UsageHistory history;
  history.add({10, 7, std::nullopt, 5});
  history.add({5, 9, std::nullopt, 6});
  EXPECT_EQ(history.samples(), 1u);
  history.add({20, 8, std::nullopt, 4});
  EXPECT_EQ(history.samples(), 1u);
  EXPECT_EQ(history.from_ns(), 20u);
}

TEST(UsageHistoryTest, CellsHaveTheirExtremesAndEmptyOnesTheValueBefore) {
  UsageHistory history;
  for (const auto& [time, bytes] : {std::pair(0, 10), {10, 30}, {20, 20}, {80, 40}, {100, 50}}) {
    history.add(sample(static_cast<std::uint64_t>(time), static_cast<std::uint64_t>(bytes)));
  }
  const UsageGrid grid = cut_into_cells(history.spans(), 0, 4);
  EXPECT_EQ(grid.peaks, (std::vector<double>{30, 20, 20, 50}));
  EXPECT_EQ(grid.floors, (std::vector<double>{10, 20, 20, 40}));
}

TEST(ChangePointsTest, FindsChangesOfLevelAndSlope) {
  std::vector<double> values;
  for (int index = 0; index < 20; ++index) values.push_back(5 + 0.01 * (index % 2));
  for (int index = 0; index < 20; ++index) values.push_back(9 + 0.01 * (index % 2));
  for (int index = 0; index < 20; ++index) values.push_back(9 + 0.5 * index + 0.01 * (index % 2));
  EXPECT_EQ(find_change_points(values, 5), (std::vector<std::size_t>{20, 40}));
  EXPECT_TRUE(find_change_points(std::vector<double>(50, 3), 5).empty());
  std::vector<double> line;
  for (int index = 0; index < 50; ++index) line.push_back(index);
  EXPECT_TRUE(find_change_points(line, 5).empty());
}

TEST(PeriodTest, FindsASawtoothOnASlope) {
  std::vector<double> values;
  for (int index = 0; index < 120; ++index) values.push_back(index % 12 + 0.05 * index);
  const auto period = find_period(values);
  ASSERT_TRUE(period);
  EXPECT_NEAR(*period, 12, 0.5);
  EXPECT_FALSE(find_period(std::vector<double>(100, 1)));
}

TEST(BendTest, FindsTheStartOfARise) {
  EXPECT_EQ(find_bend(std::vector<double>{0, 0, 0, 0, 1, 2, 3, 4}, 0.1), 3u);
  EXPECT_EQ(find_bend(std::vector<double>{0, 1, 2, 3, 4}, 0.1), 0u);
}

TEST(CellGrowthTest, ALineGrowsByItsSlope) {
  std::vector<double> line;
  for (int index = 0; index < 32; ++index) line.push_back(100 + 3 * index);
  const auto growth = find_cell_growth(line, 0);
  ASSERT_TRUE(growth);
  EXPECT_DOUBLE_EQ(growth->per_cell.value, 3);
  EXPECT_DOUBLE_EQ(growth->per_cell.low, 3);
  EXPECT_DOUBLE_EQ(growth->peak_now, 193);
  EXPECT_NEAR(growth->later_share, 1, 0.1);
  EXPECT_FALSE(find_cell_growth(line, 193)) << "it had been as high before";
}

TEST(CellGrowthTest, OneJumpNoiseAndGrowthThatStoppedAreNoGrowth) {
  std::vector<double> jump(32, 10);
  for (std::size_t index = 16; index < 32; ++index) jump[index] = 50;
  EXPECT_FALSE(find_cell_growth(jump, 0));
  std::vector<double> noise;
  for (int index = 0; index < 32; ++index) noise.push_back(index * 7919 % 31);
  EXPECT_FALSE(find_cell_growth(noise, 0));
  std::vector<double> stopped;
  for (int index = 0; index < 32; ++index) stopped.push_back(std::min(index, 20));
  EXPECT_FALSE(find_cell_growth(stopped, 0));
}

}  // namespace
}  // namespace tidemark
