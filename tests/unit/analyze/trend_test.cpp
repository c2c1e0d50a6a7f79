#include "analyze/common/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tidemark {
namespace {

TEST(TrendTest, KendallCountsPairs) {
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector<double>{1, 2, 3, 4}), 1);
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector<double>{4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector<double>{5, 5, 5}), 0);
  // Pairs: 1-3 up, 1-2 up, 1-2 up; 3-2 down, 3-2 down; 2-2 neither: (3 - 2) / 6.
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector<double>{1, 3, 2, 2}), 1.0 / 6);
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector<double>{1}), 0);
}

TEST(TrendTest, TheilSenIsTheMedianOfTheSlopes) {
  // Slopes: 1, 2 (over one), 1.5 (over two): the median is 1.5.
  EXPECT_DOUBLE_EQ(theil_sen(std::vector<double>{0, 1, 3}).value, 1.5);
  EXPECT_DOUBLE_EQ(theil_sen(std::vector<double>{7}).value, 0);
  std::vector<double> line;
  for (int index = 0; index < 20; ++index) line.push_back(3.0 * index);
  line[4] = 1e9;
  line[15] = -1e9;
  const Slope slope = theil_sen(line);
  EXPECT_DOUBLE_EQ(slope.value, 3);
  EXPECT_DOUBLE_EQ(slope.low, 3);
  EXPECT_DOUBLE_EQ(slope.high, 3);
}

// scipy.stats.theilslopes and kendalltau of scipy 1.18.1 give these.
TEST(TrendTest, AgreesWithScipy) {
  const std::vector<double> values = {2, 7, 1, 8, 3, 9, 4, 12, 14, 5};
  const Slope slope = theil_sen(values);
  EXPECT_DOUBLE_EQ(slope.value, 0.75);
  EXPECT_DOUBLE_EQ(slope.low, -0.25);
  EXPECT_DOUBLE_EQ(slope.high, 2);
  EXPECT_DOUBLE_EQ(kendall_tau(values), 21.0 / 45);
}

// Student's interval of 1, 2, 3, 4: mean 2.5, deviation 1.29099, t(3) = 3.18245: 2.5 +- 2.05426.
TEST(TrendTest, MeanHasStudentsInterval) {
  const Slope mean = mean_with_interval(std::vector<double>{1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(mean.value, 2.5);
  EXPECT_NEAR(mean.high - mean.value, 2.05426, 0.02);
  EXPECT_NEAR(mean.value - mean.low, 2.05426, 0.02);
  // t(1) = 12.7062, deviation 1.41421: 12.7062 * 1.41421 / sqrt(2) = 12.7062.
  EXPECT_NEAR(mean_with_interval(std::vector<double>{0, 2}).high, 13.7062, 0.001);
  EXPECT_TRUE(std::isinf(mean_with_interval(std::vector<double>{5}).high));
  const Slope equal = mean_with_interval(std::vector<double>{512, 512, 512});
  EXPECT_EQ(equal.low, equal.high);
}

}  // namespace
}  // namespace tidemark
