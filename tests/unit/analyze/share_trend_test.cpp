#include <gtest/gtest.h>

#include <vector>

#include "analyze/common/trend.h"

namespace tidemark {
namespace {

using Shares = std::vector<std::optional<double>>;

TEST(ShareTrend, RisesWithAStraightLine) {
  // 0.10, 0.14, ... 0.54: 11 steps of 0.04.
  Shares shares;
  for (int index = 0; index < 12; ++index) shares.emplace_back(0.10 + 0.04 * index);
  const auto trend = trend_of(shares);
  ASSERT_TRUE(trend.has_value());
  EXPECT_NEAR(trend->over_recording.value, 0.44, 1e-12);
  EXPECT_NEAR(trend->over_recording.low, 0.44, 1e-12);  // all slopes are the same
  EXPECT_EQ(trend->points, 12U);
  EXPECT_TRUE(trend->rises());
  EXPECT_FALSE(trend->falls());
}

TEST(ShareTrend, SeesNoneInASawtooth) {
  Shares shares;
  for (int index = 0; index < 12; ++index) shares.emplace_back(index % 2 == 0 ? 0.2 : 0.6);
  const auto trend = trend_of(shares);
  ASSERT_TRUE(trend.has_value());
  EXPECT_FALSE(trend->rises());
  EXPECT_FALSE(trend->falls());
}

// The slopes of neighbours are up to 0.95 for a seventh of the recording: over all of it, more than a share can change.
TEST(ShareTrend, ChangesByOneAtMost) {
  const Shares noisy = {0.05, 0.95, 0.10, 0.90, 0.02, 0.97, 0.50, 0.99};
  const auto trend = trend_of(noisy);
  ASSERT_TRUE(trend.has_value());
  EXPECT_GT(theil_sen(std::vector{0.05, 0.95, 0.10, 0.90, 0.02, 0.97, 0.50, 0.99}).high * 7, 1)
      << "as a line without ends";
  EXPECT_EQ(trend->over_recording.high, 1);
  EXPECT_GE(trend->over_recording.low, -1);
  EXPECT_LE(trend->over_recording.low, trend->over_recording.value);
  EXPECT_LE(trend->over_recording.value, trend->over_recording.high);
  EXPECT_FALSE(trend->rises());
}

TEST(ShareTrend, SkipsUnknownValuesAtTheBeginning) {
  Shares shares(3);
  for (int index = 0; index < 9; ++index) shares.emplace_back(0.9 - 0.05 * index);
  const auto trend = trend_of(shares);
  ASSERT_TRUE(trend.has_value());
  EXPECT_NEAR(trend->over_recording.value, -0.40, 1e-12);  // 8 steps of -0.05
  EXPECT_EQ(trend->points, 9U);
  EXPECT_TRUE(trend->falls());
}

TEST(ShareTrend, HasNoneForTooFewValues) {
  EXPECT_FALSE(trend_of(Shares(12)).has_value());
  EXPECT_FALSE(trend_of(Shares(7, 0.5)).has_value());
  Shares gap(12, 0.5);
  gap[6].reset();
  EXPECT_FALSE(trend_of(gap).has_value());
}

}  // namespace
}  // namespace tidemark
