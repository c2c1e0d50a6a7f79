#include "plan/planned_job.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

using namespace std::chrono_literals;

PhantomProcess process(std::uint64_t steps, bool stopped, std::uint64_t requests = 10) {
  PhantomProcess process;
  process.steps = steps;
  process.stopped = stopped;
  process.requests = requests;
  return process;
}

TEST(StepWatchTest, AJobIsCompleteWhenEachRankHasMadeItsLastStep) {
  const auto now = StepWatch::Time::clock::now();
  StepWatch watch;
  EXPECT_FALSE(watch.is_complete({process(2, false), process(2, false)}, now));
  EXPECT_FALSE(watch.is_complete({process(3, true), process(2, false)}, now));
  EXPECT_TRUE(watch.is_complete({process(3, true), process(3, true)}, now));
}

TEST(StepWatchTest, ProcessesThatNeverUsedTheGpuAreNotWaitedFor) {
  StepWatch watch;
  EXPECT_TRUE(watch.is_complete({process(3, true), process(0, false, 0)}, StepWatch::Time::clock::now()));
}

TEST(StepWatchTest, ARankThatMakesNoStepsAnyMoreIsWaitedForHalfAMinute) {
  const auto now = StepWatch::Time::clock::now();
  StepWatch watch;
  EXPECT_FALSE(watch.is_complete({process(3, true), process(1, false)}, now + 1s));
  EXPECT_FALSE(watch.is_complete({process(3, true), process(1, false, 11)}, now + 20s));
  EXPECT_FALSE(watch.is_complete({process(3, true), process(2, false)}, now + 29s));
  EXPECT_FALSE(watch.is_complete({process(3, true), process(2, false)}, now + 58s));
  EXPECT_TRUE(watch.is_complete({process(3, true), process(2, false)}, now + 60s));
}

TEST(StepWatchTest, OneThatMakesNoneIsWaitedForAFewSeconds) {
  const auto now = StepWatch::Time::clock::now();
  StepWatch watch;
  EXPECT_FALSE(watch.is_complete({process(3, true), process(0, false)}, now + 1s));
  EXPECT_FALSE(watch.is_complete({process(3, true), process(0, false, 99)}, now + 5s));
  EXPECT_TRUE(watch.is_complete({process(3, true), process(0, false, 999)}, now + 7s));
}

TEST(StepWatchTest, AQuietProgramAsksForNoMemory) {
  const auto now = StepWatch::Time::clock::now();
  StepWatch watch;
  static_cast<void>(watch.is_complete({process(0, false, 1)}, now + 10s));
  static_cast<void>(watch.is_complete({process(1, false, 1)}, now + 50s));
  EXPECT_EQ(watch.quiet_for(now + 70s), 60s);
}

TEST(StepWatchTest, AProgramThatUsesTheGpuAndMakesNoStep) {
  const auto now = StepWatch::Time::clock::now();
  StepWatch watch;
  static_cast<void>(watch.is_complete({process(0, false, 1)}, now + 10s));
  static_cast<void>(watch.is_complete({process(0, false, 2)}, now + 100s));
  EXPECT_EQ(watch.steps(), 0U);
  EXPECT_GE(watch.time_without_step(now + 121s), 120s);
  EXPECT_EQ(watch.quiet_for(now + 121s), 21s);
  static_cast<void>(watch.is_complete({process(1, false, 3)}, now + 130s));
  EXPECT_EQ(watch.steps(), 1U);
  EXPECT_EQ(watch.time_without_step(now + 131s), 1s);
}

}  // namespace
}  // namespace tidemark
