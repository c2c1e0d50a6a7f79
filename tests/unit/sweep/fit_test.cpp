#include "analyze/sweep/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "query/results/results.h"
#include "report/common/text.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::function<double(double value)>;

constexpr std::uint64_t kGB = 1'000'000'000;

Fit fit_of(std::uint64_t limit, const ValueRange& range) {
  Fit fit;
  fit.name = "batch";
  fit.option = "--batch-size";
  fit.range = range;
  fit.gpu = "H200";
  fit.memory_bytes = limit;
  fit.limit_bytes = limit;
  return fit;
}

// A program that allocates `bytes` of its value; a tenth more is reserved, in segments of 20 MiB.
TrialResult run_program(const Bytes& bytes, std::uint64_t value, std::uint64_t limit) {
  constexpr double kSegment = 20 << 20;
  TrialResult result;
  const double allocated = bytes(static_cast<double>(value));
  const auto reserved = static_cast<std::uint64_t>(std::ceil(allocated * 1.1 / kSegment) * kSegment);
  result.fits = reserved <= limit;
  result.out_of_memory = reserved > limit;
  result.peak_allocated_bytes = std::min(static_cast<std::uint64_t>(allocated), limit);
  result.peak_reserved_bytes = std::min(reserved, limit);
  return result;
}

Fit find(const Bytes& bytes, std::uint64_t limit, const ValueRange& range) {
  Fit fit = fit_of(limit, range);
  find_largest(fit, [&](std::uint64_t value) { return run_program(bytes, value, limit); });
  return fit;
}

std::vector<std::uint64_t> values_of(const Fit& fit) {
  std::vector<std::uint64_t> values;
  for (const FitTrial& trial : fit.trials) values.push_back(trial.value);
  return values;
}

TEST(Fit, ALinearProgramTakesFewTrials) {
  // 1 GB and 100 MB for each: 80 GB / 1.1 = 72.7 GB, so 717 fit.
  const Fit fit = find([](double batch) { return 1e9 + 1e8 * batch; }, 80 * kGB, {1, 1024, 1});
  EXPECT_EQ(fit.largest(), 717U);
  EXPECT_LE(fit.trials.size(), 8U) << ::testing::PrintToString(values_of(fit));
  EXPECT_TRUE(fit.monotone());
}

TEST(Fit, TheAnswerIsThatOfTryingAll) {
  const std::vector<Bytes> programs = {
      [](double x) { return 1e9 + 1e8 * x; },
      [](double x) { return 5e9 + 3e6 * x + 1e5 * x * x; },            // attention: the square of the sequence
      [](double x) { return std::max(2e10, 1e9 + 7e7 * x); },          // another moment is the peak at first
      [](double x) { return 1e9 + std::ceil(x / 64) * 64e7; },         // in steps
      [](double x) { return 1e9 + 2e9 * std::sqrt(x); },               // less and less
      [](double x) { return x < 300 ? 1e9 : 1e9 + 1e9 * (x - 300); },  // a bend
  };
  for (std::size_t index = 0; index < programs.size(); ++index) {
    for (const std::uint64_t limit : {10 * kGB, 24 * kGB, 80 * kGB, 141 * kGB}) {
      std::optional<std::uint64_t> expected;
      for (std::uint64_t value = 1; value <= 1024; ++value) {
        if (*run_program(programs[index], value, limit).fits) expected = value;
      }
      const Fit fit = find(programs[index], limit, {1, 1024, 1});
      EXPECT_EQ(fit.largest(), expected) << index << ", " << limit << " " << ::testing::PrintToString(values_of(fit));
      EXPECT_LE(fit.trials.size(), index == 0 ? 8U : 15U) << index << " " << ::testing::PrintToString(values_of(fit));
    }
  }
}

TEST(Fit, TriesNothingTwiceAndStaysWithinTheRange) {
  const Fit fit = find([](double x) { return 1e9 + 9e7 * x; }, 24 * kGB, {8, 1000, 24});
  EXPECT_EQ(fit.largest(), 224U);  // 24 GB / 1.1: 231.3; 8 + 9 * 24
  std::vector<std::uint64_t> values = values_of(fit);
  for (const std::uint64_t value : values) EXPECT_EQ((value - 8) % 24, 0U);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
}

TEST(Fit, NothingFitsAndEverythingFits) {
  const Fit nothing = find([](double) { return 9e10; }, 80 * kGB, {1, 64, 1});
  EXPECT_EQ(nothing.largest(), std::nullopt);
  EXPECT_THAT(values_of(nothing), ElementsAre(1, 2));
  EXPECT_TRUE(nothing.all_alike());
  EXPECT_THAT(to_text(nothing, {}), HasSubstr("not even 1\n1 and 2 fail with the same memory: the program ignores"));
  EXPECT_FALSE(find([](double x) { return 1e9 * x; }, 80 * kGB, {1, 64, 1}).all_alike());
  const Fit ignored = find([](double) { return 1e9; }, 80 * kGB, {1, 64, 1});
  EXPECT_THAT(to_text(ignored, {}), HasSubstr("has no effect on the program's memory: "));
  EXPECT_EQ(find([](double) { return 1e9; }, 80 * kGB, {1, 64, 1}).largest(), 64U);
  EXPECT_EQ(find([](double) { return 1e9; }, 80 * kGB, {5, 5, 1}).largest(), 5U);
}

TEST(Fit, AFailedTrialDoesNotEndTheSearch) {
  Fit fit = fit_of(80 * kGB, {1, 1024, 1});
  find_largest(fit, [](std::uint64_t value) {
    if (value <= 40) return run_program([](double x) { return 1e9 * x; }, value, 80 * kGB);
    TrialResult failed;
    failed.failure = "the program failed";
    return failed;
  });
  EXPECT_EQ(fit.largest(), 40U);
}

TEST(Fit, StopsWhenAsked) {
  Fit fit = fit_of(80 * kGB, {1, 1024, 1});
  find_largest(fit, [](std::uint64_t value) -> std::optional<TrialResult> {
    if (value > 1) return std::nullopt;
    return run_program([](double x) { return 1e9 * x; }, value, 80 * kGB);
  });
  EXPECT_TRUE(fit.stopped);
  EXPECT_EQ(fit.trials.size(), 1U);
}

TEST(Fit, SaysWhereMemoryDoesNotGrow) {
  const Fit fit = find([](double x) { return x == 4 ? 5e9 : 4e9 + x; }, 80 * kGB, {1, 5, 1});
  EXPECT_FALSE(fit.monotone());
  EXPECT_THAT(to_text(fit, {}), HasSubstr("The peak does not grow with every batch"));
}

TEST(Fit, ReportsTheAnswerFirst) {
  Fit fit = fit_of(4 * kGB, {1, 1024, 1});
  fit.margin_share = 0.05;
  find_largest(fit, [](std::uint64_t value) { return run_program([](double x) { return 1e9 * x; }, value, 4 * kGB); });
  EXPECT_EQ(to_text(fit, {}).find("batch 3 fits into the 3.7 GiB of H200 with a margin of 5.0%\n"), 0U);
  const std::string json = to_json(fit);
  EXPECT_THAT(json, HasSubstr("\"largest\": 3,"));
  EXPECT_THAT(json, HasSubstr("\"margin_share\": 0.05,"));
}

}  // namespace
}  // namespace tidemark
