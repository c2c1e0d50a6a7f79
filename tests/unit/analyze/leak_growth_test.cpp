#include <gtest/gtest.h>

#include <vector>

#include "analyze/leaks/growth.h"

namespace tidemark {
namespace {

constexpr std::uint32_t kBoundaries = 30;
constexpr std::uint32_t kWarmup = 3;

// A block of `bytes` born in step `birth` and alive at so many boundaries; 0 = to the end.
StepSpan span(std::uint32_t birth, std::uint32_t boundaries = 0, std::uint64_t bytes = 100) {
  return {birth + 1, boundaries == 0 ? kBoundaries - 1 : birth + boundaries, bytes};
}

std::optional<Growth> judge(const std::vector<StepSpan>& spans) {
  return find_retained_growth(spans, kBoundaries, kWarmup);
}

TEST(LeakGrowthTest, JudgedStepsAreThoseSeenToOutliveAStep) {
  EXPECT_EQ(analyzed_steps(12, 2), 8U);
  EXPECT_EQ(analyzed_steps(12, 11), 0U);
  EXPECT_EQ(analyzed_steps(0, 0), 0U);
  EXPECT_EQ(analyzed_steps(12, 4'294'967'295U), 0U);
}

TEST(LeakGrowthTest, BlocksOfEveryStepAreALeak) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < kBoundaries - 1; ++step) spans.push_back(span(step));
  const auto growth = judge(spans);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->classification, GrowthClass::leak);
  EXPECT_EQ(growth->analyzed_steps, 25U);  // 3 to 27
  EXPECT_EQ(growth->grown_steps, 25U);
  EXPECT_EQ(growth->every_steps, 0U);
  EXPECT_DOUBLE_EQ(growth->bytes_per_step.value, 100);
  EXPECT_EQ(growth->first_step, 3U);
  EXPECT_EQ(growth->last_step, 27U);
  EXPECT_EQ(growth->released_after, 0U);
}

// Of 25 analyzed steps, 5 keep 1,000 bytes each: 200 bytes per step, though the mean would be 200 only by chance.
TEST(LeakGrowthTest, APeriodicLeakHasItsPeriod) {
  for (const std::uint32_t first : {3U, 4U, 6U}) {
    std::vector<StepSpan> spans;
    for (std::uint32_t step = first; step < kBoundaries - 1; step += 5) spans.push_back(span(step, 0, 1000));
    const auto growth = judge(spans);
    ASSERT_TRUE(growth) << first;
    EXPECT_EQ(growth->classification, GrowthClass::leak) << first;
    EXPECT_EQ(growth->every_steps, 5U);
    EXPECT_DOUBLE_EQ(growth->bytes_per_step.value, 200);
  }
  std::vector<StepSpan> uneven;
  for (const std::uint32_t step : {4U, 9U, 14U, 20U, 25U}) uneven.push_back(span(step, 0, 1000));
  const auto growth = judge(uneven);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->every_steps, 0U);
}

TEST(LeakGrowthTest, BlocksOfTheWarmUpAndFromBeforeAreNot) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < kWarmup; ++step) spans.push_back(span(step));
  for (int block = 0; block < 50; ++block) spans.push_back({0, kBoundaries - 1, 100});
  EXPECT_FALSE(judge(spans));
}

TEST(LeakGrowthTest, TwoStepsAreTooFewAndOneIsNothing) {
  EXPECT_FALSE(judge({span(10)}));
  EXPECT_FALSE(judge({span(10), span(10)}));
  const auto growth = judge({span(10), span(20)});
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->classification, GrowthClass::too_few);
  EXPECT_DOUBLE_EQ(growth->bytes_per_step.value, 200.0 / 25);
}

TEST(LeakGrowthTest, GrowthThatHasStoppedIsNot) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 3; step < 15; ++step) spans.push_back(span(step));
  EXPECT_EQ(judge(spans)->classification, GrowthClass::stopped);
}

TEST(LeakGrowthTest, GrowthThatSlowsIsNot) {
  std::vector<StepSpan> spans;
  for (const std::uint32_t step : {3U, 4U, 5U, 6U, 8U, 10U, 13U, 19U}) spans.push_back(span(step));
  EXPECT_EQ(judge(spans)->classification, GrowthClass::slowing);
}

// Freed after 10 boundaries: the remaining blocks are too young, although they have lived through 1 to 9 of them.
TEST(LeakGrowthTest, AQueueIsNot) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < 19; ++step) spans.push_back(span(step, 10));
  for (std::uint32_t step = 19; step < kBoundaries - 1; ++step) spans.push_back(span(step));
  EXPECT_FALSE(judge(spans));
}

// Half of the blocks are freed after two boundaries. The others have outlived that: blocks older than 3 boundaries are
// judged.
TEST(LeakGrowthTest, BlocksThatOutliveFreesOfTheirKindAreALeak) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < kBoundaries - 1; ++step) {
    spans.push_back(span(step));
    if (step < 27) spans.push_back(span(step, 2, 7000));
  }
  const auto growth = judge(spans);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->classification, GrowthClass::leak);
  EXPECT_EQ(growth->released_after, 2U);
  EXPECT_EQ(growth->analyzed_steps, 23U);  // steps 3 to 25: alive at 4 boundaries or more
  EXPECT_DOUBLE_EQ(growth->bytes_per_step.value, 100);
}

// Without such a proof, three times the age is needed: freed all at once after up to 6 steps, the last 11 are still
// there.
TEST(LeakGrowthTest, GarbageNotCollectedForALittleLongerIsNot) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < 18; ++step) spans.push_back(span(step, 6 - step % 6));
  for (std::uint32_t step = 18; step < kBoundaries - 1; ++step) spans.push_back(span(step));
  EXPECT_FALSE(judge(spans));
}

TEST(LeakGrowthTest, OneLateFreeAmongManyKeptIsUnusual) {
  std::vector<StepSpan> spans = {span(1, 25)};
  for (std::uint32_t step = 0; step < kBoundaries - 1; ++step) spans.push_back(span(step));
  EXPECT_EQ(judge(spans)->classification, GrowthClass::leak);
}

// Three blocks in four are freed only after 20 boundaries, and the fourth not yet: undecidable.
TEST(LeakGrowthTest, FreesThatComeLateLeaveItUnclear) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < 9; ++step) {
    for (int block = 0; block < 3; ++block) spans.push_back(span(step, 20));
  }
  for (std::uint32_t step = 3; step < kBoundaries - 1; ++step) spans.push_back(span(step));
  const auto growth = judge(spans);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->classification, GrowthClass::unclear);
  EXPECT_EQ(growth->released_after, 20U);
}

// Most are freed after 2 boundaries, and one of every fifth step is left: a leak, unless blocks as old are freed now
// and then. Judged are blocks older than 3 boundaries: of steps 3 to 25; 5, 10, 15, 20 and 25 leave one.
TEST(LeakGrowthTest, FreesOfBlocksAsOldAsThoseLeftMakeItUnclear) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < 27; ++step) {
    for (int block = 0; block < 3; ++block) spans.push_back(span(step, 2));
  }
  for (std::uint32_t step = 5; step < kBoundaries - 1; step += 5) spans.push_back(span(step));
  spans.push_back(span(4, 12));
  EXPECT_EQ(judge(spans)->classification, GrowthClass::leak);
  spans.push_back(span(8, 12));
  EXPECT_EQ(judge(spans)->classification, GrowthClass::unclear);
}

TEST(LeakGrowthTest, ABlockReplacedByALargerOneIsALeak) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < kBoundaries - 1; ++step) spans.push_back(span(step, 1, 1000 + step * 64));
  const std::vector<double> work(kBoundaries, 5000);
  EXPECT_FALSE(judge(spans));
  const auto growth = find_replacement_growth(spans, kBoundaries, kWarmup, work);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->kind, GrowthKind::replaced);
  EXPECT_EQ(growth->classification, GrowthClass::leak);
  EXPECT_DOUBLE_EQ(growth->bytes_per_step.value, 64);
  EXPECT_EQ(growth->grown_steps, 25U);
}

TEST(LeakGrowthTest, NotWhenTheWorkGrowsToo) {
  std::vector<StepSpan> spans;
  std::vector<double> work;
  for (std::uint32_t step = 0; step < kBoundaries; ++step) {
    if (step + 1 < kBoundaries) spans.push_back(span(step, 1, 1000 + step * 64));
    work.push_back(5000.0 + step);
  }
  EXPECT_EQ(find_replacement_growth(spans, kBoundaries, kWarmup, work)->classification, GrowthClass::with_work);
}

TEST(LeakGrowthTest, NotWhenTheSizeGoesUpAndDown) {
  std::vector<StepSpan> spans;
  for (std::uint32_t step = 0; step < kBoundaries - 1; ++step) spans.push_back(span(step, 1, 1000 + step * 7919 % 640));
  EXPECT_FALSE(find_replacement_growth(spans, kBoundaries, kWarmup, std::vector<double>(kBoundaries, 1)));
}

}  // namespace
}  // namespace tidemark
