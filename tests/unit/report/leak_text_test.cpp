#include <gtest/gtest.h>

#include <string>

#include "report/leaks/words.h"

namespace tidemark {
namespace {

TEST(LeakText, OnlyMemoryOfAGpuIsToGoToTheCpu) {
  LeakObject object;
  object.mistake = {UsualMistake::growing_container, Confidence::exact};
  object.device = {DeviceType::cuda, 0};
  EXPECT_EQ(mistake_line(object), "mistake: a list or dictionary only grows: empty it, or keep its tensors on the CPU");
  object.device = {DeviceType::cpu, 0};
  EXPECT_EQ(mistake_line(object), "mistake: a list or dictionary only grows: empty it");
}

TEST(LeakText, StepsOfAWindowAreTheLastOnes) {
  Leaks leaks;
  leaks.steps.source = TrainingSteps::Source::optimizer;
  leaks.steps.starts = {{58'900'000'000, 7}, {59'000'000'000, 17}, {59'100'000'000, 27}};
  leaks.of_last_part = true;
  EXPECT_EQ(leak_steps(leaks),
            "Training steps: the last 3, from 58.900 s to 59.100 s; a step starts at the first allocation of the "
            "optimizer; no warm-up\n");
}

}  // namespace
}  // namespace tidemark
