#include "batching/batch_search.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <functional>

namespace tidemark {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr double kLimit = 80 * kGiB;

using Curve = std::function<double(double size)>;

double rounded_up(double bytes, double unit) {
  return std::ceil(bytes / unit) * unit;
}

// The largest multiple below 2^40 with a peak within the limit, by bisection; 0: none.
std::size_t truth(const Curve& peak, double limit, std::size_t multiple) {
  std::size_t low = 0;
  std::size_t high = (std::size_t{1} << 40) / multiple;
  while (low + 1 < high) {
    const std::size_t middle = (low + high) / 2;
    (peak(static_cast<double>(middle * multiple)) <= limit ? low : high) = middle;
  }
  return low * multiple;
}

BatchSearchResult search(const Curve& peak, BatchSearchOptions options = {}, double limit = kLimit) {
  options.limit_bytes = static_cast<std::uint64_t>(limit);
  BatchSearch search = *BatchSearch::create(options);
  while (const auto size = search.next()) {
    EXPECT_EQ(*size % options.multiple_of, 0U);
    EXPECT_GT(*size, 0U);
    const double bytes = peak(static_cast<double>(*size));
    const bool fits = bytes <= limit;
    search.report(*size, fits, fits ? std::optional(static_cast<std::uint64_t>(bytes)) : std::nullopt);
  }
  return search.result();
}

void expect_found(const Curve& peak, BatchSearchOptions options = {}, double limit = kLimit) {
  const BatchSearchResult result = search(peak, options, limit);
  const std::size_t largest = truth(peak, limit, options.multiple_of);
  ASSERT_TRUE(result.batch_size);
  EXPECT_LE(*result.batch_size, largest);
  EXPECT_GE(static_cast<double>(*result.batch_size), 0.95 * static_cast<double>(largest));
  EXPECT_LE(result.probes, 8U);
}

TEST(BatchSearch, ALineIsFoundWithoutRunningOutOfMemory) {
  const Curve line = [](double size) { return 10 * kGiB + size * 300 * kMiB; };  // 238 fit
  const BatchSearchResult result = search(line);
  EXPECT_EQ(result.end, BatchSearchEnd::found);
  EXPECT_FALSE(result.does_not_fit);
  EXPECT_LE(result.probes, 5U);
  EXPECT_GE(*result.batch_size, 227U);
  EXPECT_LE(*result.batch_size, 238U);
  EXPECT_DOUBLE_EQ(*result.slope_bytes, 300 * kMiB);
  EXPECT_DOUBLE_EQ(*result.intercept_bytes, 10 * kGiB);
}

TEST(BatchSearch, StaircasesOfTheAllocator) {
  for (const double step : {2 * kMiB, 20 * kMiB}) {
    for (const double slope : {0.01, 0.5, 3.0, 21.0, 200.0, 3000.0}) {
      expect_found([&](double size) { return rounded_up(5 * kGiB + size * slope * kMiB, step); });
    }
  }
}

TEST(BatchSearch, UseThatGrowsFasterThanTheBatch) {
  for (const double full : {20.0, 300.0, 1000.0, 5000.0}) {
    expect_found([&](double size) { return kGiB + 79 * kGiB * (size / full) * (size / full); });
  }
  expect_found([](double size) { return 2 * kGiB + size * 50 * kMiB + size * size * 0.2 * kMiB; });
}

TEST(BatchSearch, AWorkspaceThatComesAtOneSize) {
  for (const double from : {10.0, 60.0, 120.0, 180.0}) {
    expect_found([&](double size) { return kGiB + size * 300 * kMiB + (size >= from ? 0.1 * kLimit : 0); });
  }
}

TEST(BatchSearch, ResultsOfAnotherSearchAreNoProbes) {
  BatchSearchOptions options;
  options.start = 235;
  options.limit_bytes = static_cast<std::uint64_t>(kLimit);
  BatchSearch search = *BatchSearch::create(options);
  search.report(235, true, 10 * kGiB + 235 * 300 * kMiB);
  EXPECT_EQ(search.result().end, BatchSearchEnd::searching);
  search.suppose(1, true, 10 * kGiB + 300 * kMiB);
  search.suppose(128, true, 10 * kGiB + 128 * 300 * kMiB);
  EXPECT_EQ(search.result().end, BatchSearchEnd::found);
  EXPECT_EQ(search.result().batch_size, 235U);
  EXPECT_EQ(search.result().probes, 1U);
  search.suppose(240, false, std::nullopt);
  EXPECT_EQ(search.result().does_not_fit, 240U);
}

TEST(BatchSearch, UseThatDoesNotDependOnTheBatchEndsAtTheMaximum) {
  BatchSearchOptions options;
  options.maximum = 50'000;
  options.multiple_of = 8;
  const BatchSearchResult result = search([](double) { return 3 * kGiB; }, options);
  EXPECT_EQ(result.end, BatchSearchEnd::maximum_fits);
  EXPECT_EQ(result.batch_size, 50'000U);
  EXPECT_EQ(search([](double) { return 3 * kGiB; }).end, BatchSearchEnd::probes_used);
}

TEST(BatchSearch, MultiplesAndSmallSizesAreExact) {
  BatchSearchOptions options;
  options.multiple_of = 8;
  // 58 would fit: 56 is the multiple.
  EXPECT_EQ(search([](double size) { return kGiB + size * 1.35 * kGiB; }, options).batch_size, 56U);
  EXPECT_EQ(search([](double size) { return kGiB + size * 11 * kGiB; }).batch_size, 7U);
  EXPECT_EQ(search([](double size) { return kGiB + size * 70 * kGiB; }).batch_size, 1U);
}

TEST(BatchSearch, AStartThatIsTooLargeIsNotTheEnd) {
  BatchSearchOptions options;
  options.start = 4096;
  expect_found([](double size) { return kGiB + size * 300 * kMiB; }, options);
}

TEST(BatchSearch, ASizeThatFitsNoMoreIsNotTheResult) {
  BatchSearchOptions options;
  options.start = 100;
  options.limit_bytes = static_cast<std::uint64_t>(kLimit);
  BatchSearch search = *BatchSearch::create(options);
  search.report(10, true, 10 * kGiB);
  search.report(100, true, std::nullopt);
  search.report(100, false, std::nullopt);
  EXPECT_EQ(search.result().batch_size, 10U);
  EXPECT_EQ(search.result().does_not_fit, 100U);
}

TEST(BatchSearch, NothingFits) {
  const BatchSearchResult result = search([](double size) { return kLimit + size; });
  EXPECT_EQ(result.end, BatchSearchEnd::nothing_fits);
  EXPECT_FALSE(result.batch_size);
  EXPECT_EQ(result.does_not_fit, 1U);
  EXPECT_EQ(result.probes, 1U);
}

TEST(BatchSearch, WithoutPeaksItStaysBetweenWhatFitsAndWhatDoesNot) {
  BatchSearch search = *BatchSearch::create({});
  while (const auto size = search.next()) search.report(*size, *size <= 100, std::nullopt);
  EXPECT_LE(*search.result().batch_size, 100U);
  EXPECT_GT(*search.result().does_not_fit, 100U);
  EXPECT_GE(*search.result().batch_size, 64U);
}

TEST(BatchSearch, RejectsInvalidOptions) {
  BatchSearchOptions no_start;
  no_start.start = 0;
  EXPECT_FALSE(BatchSearch::create(no_start));
  BatchSearchOptions options;
  options.multiple_of = 0;
  EXPECT_FALSE(BatchSearch::create(options));
  options.multiple_of = 8;
  options.maximum = 7;
  EXPECT_FALSE(BatchSearch::create(options));
  options = {};
  options.margin = 1;
  EXPECT_FALSE(BatchSearch::create(options));
}

TEST(BatchSearch, AnyLineWithAnyRoundingIsFoundInEightProbes) {
  const bool holds = rc::check([] {
    const double limit = *rc::gen::inRange(4, 192) * kGiB;
    const double intercept = *rc::gen::inRange(0, 90) / 100.0 * limit;
    const double slope = std::exp2(*rc::gen::inRange(110, 340) / 10.0);  // 2 KiB to 16 GiB
    const double step = *rc::gen::element(512.0, 2 * kMiB, 20 * kMiB);
    BatchSearchOptions options;
    options.multiple_of = *rc::gen::element<std::size_t>(1, 8, 64);
    const Curve peak = [&](double size) { return rounded_up(intercept + size * slope, step); };
    const std::size_t largest = truth(peak, limit, options.multiple_of);
    const BatchSearchResult result = search(peak, options, limit);
    RC_ASSERT(result.probes <= 8U);
    RC_ASSERT(result.batch_size.value_or(0) <= largest);
    RC_ASSERT(static_cast<double>(result.batch_size.value_or(0)) >= 0.95 * static_cast<double>(largest));
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tidemark
