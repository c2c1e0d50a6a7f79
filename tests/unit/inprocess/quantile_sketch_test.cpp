#include "analyze/common/quantile_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "inprocess/performance/metric_values.h"

namespace tidemark {
namespace {

// The value that has the rank, by sorting.
double exact(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void expect_within_one_percent(const QuantileSketch& sketch, const std::vector<double>& values) {
  for (const double share : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0}) {
    const double truth = exact(values, share);
    ASSERT_TRUE(sketch.quantile(share));
    EXPECT_NEAR(*sketch.quantile(share), truth, std::abs(truth) * (QuantileSketch::kRelativeError + 1e-9)) << share;
  }
}

QuantileSketch sketch_of(const std::vector<double>& values) {
  QuantileSketch sketch;
  for (const double value : values) sketch.add(value);
  return sketch;
}

TEST(QuantileSketch, IsWithinOnePercentOfTheValueOfTheRank) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> losses(0, 3);
  std::normal_distribution<double> both_signs(0.5, 2);
  std::vector<double> first;
  std::vector<double> second;
  for (int n = 0; n < 20'000; ++n) {
    first.push_back(losses(random));
    second.push_back(n % 10 == 0 ? 0.0 : both_signs(random));
  }
  expect_within_one_percent(sketch_of(first), first);
  expect_within_one_percent(sketch_of(second), second);
}

TEST(QuantileSketch, MergedEqualsOneSketchOfAllValues) {
  std::mt19937_64 random(8);
  std::cauchy_distribution<double> wide(0, 1);
  std::vector<double> all;
  QuantileSketch merged;
  for (int part = 0; part < 5; ++part) {
    std::vector<double> values(3000);
    std::generate(values.begin(), values.end(), [&] { return wide(random); });
    all.insert(all.end(), values.begin(), values.end());
    merged.merge(sketch_of(values));
  }
  const QuantileSketch at_once = sketch_of(all);
  EXPECT_EQ(merged.count(), 15'000U);
  for (double share = 0; share <= 1; share += 0.01) EXPECT_EQ(merged.quantile(share), at_once.quantile(share)) << share;
  expect_within_one_percent(merged, all);
}

TEST(QuantileSketch, TheLargestStayExactWhereTheRangeIsTooWide) {
  QuantileSketch sketch;
  std::vector<double> values;
  for (int exponent = -300; exponent <= 300; exponent += 3) values.push_back(std::pow(10.0, exponent));
  // In any order: values that were in range at first may have to be joined later.
  std::shuffle(values.begin(), values.end(), std::mt19937_64(9));
  for (const double value : values) sketch.add(value);
  EXPECT_TRUE(sketch.joined());
  EXPECT_NEAR(*sketch.quantile(1) / 1e300, 1, 0.01);
  EXPECT_NEAR(*sketch.quantile(0.99) / exact(values, 0.99), 1, 0.01);
  EXPECT_GT(*sketch.quantile(0), 1e280);  // the joined ones
}

TEST(QuantileSketch, TakesTheExtremesOfDouble) {
  using Limits = std::numeric_limits<double>;
  const QuantileSketch smallest = sketch_of({Limits::denorm_min()});
  EXPECT_GT(*smallest.quantile(0.5), 0);
  const QuantileSketch largest = sketch_of({Limits::max(), -Limits::max()});
  EXPECT_NEAR(*largest.quantile(1) / Limits::max(), 1, 0.011);
  EXPECT_NEAR(*largest.quantile(0) / -Limits::max(), 1, 0.011);
  EXPECT_EQ(QuantileSketch().quantile(0.5), std::nullopt);
  EXPECT_EQ(sketch_of({0, -0.0, 0}).quantile(0.5), 0.0);
}

TEST(RunningMoments, AreEqualForMergedParts) {
  RunningMoments whole;
  RunningMoments parts;
  RunningMoments part;
  // Far from zero and close to each other: sums of squares would lose all digits.
  const double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  int n = 0;
  for (const double value : values) {
    whole.add(value);
    part.add(value);
    if (++n % 2 != 0) continue;
    parts.merge(part);
    part = RunningMoments();
  }
  for (const RunningMoments& moments : {whole, parts}) {
    EXPECT_EQ(moments.count, 4U);
    EXPECT_DOUBLE_EQ(moments.mean, 1e9 + 10);
    EXPECT_DOUBLE_EQ(*moments.deviation(), std::sqrt(22.5));
    EXPECT_EQ(moments.lowest, 1e9 + 4);
    EXPECT_EQ(moments.highest, 1e9 + 16);
  }
  EXPECT_EQ(RunningMoments().deviation(), std::nullopt);
}

}  // namespace
}  // namespace tidemark
