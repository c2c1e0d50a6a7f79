#include <gtest/gtest.h>

#include <string>

#include "report/leaks/words.h"

namespace tidemark {
namespace {

TEST(LeakText, OnlyMemoryOfAGpuIsToGoToTheCpu) {
  Leaks leaks;
  LeakObject& object = leaks.objects.emplace_back();
  object.mistake = {UsualMistake::growing_container, Confidence::exact, "__main__.kept"};
  object.device = {DeviceType::cuda, 0};
  EXPECT_EQ(leak_fixes(leaks)[0].fix, "__main__.kept: empty it, or keep its tensors on the CPU");
  EXPECT_EQ(leak_fixes(leaks)[0].cause, "cause: a list or dictionary only grows");
  object.device = {DeviceType::cpu, 0};
  EXPECT_EQ(leak_fixes(leaks)[0].fix, "__main__.kept: empty it");
}

TEST(LeakText, LeaksOfOneMistakeHaveOneFix) {
  const auto leak = [](UsualMistake mistake, double rate, std::uint32_t every_steps) {
    LeakObject object;
    object.mistake = {mistake, Confidence::estimated};
    object.growth.bytes_per_step.value = rate;
    object.growth.every_steps = every_steps;
    return object;
  };
  Leaks leaks;
  leaks.objects = {leak(UsualMistake::losses_with_graph, 4096, 0), leak(UsualMistake::none, 2048, 4),
                   leak(UsualMistake::losses_with_graph, 1024, 0), leak(UsualMistake::none, 512, 4)};
  ASSERT_EQ(leak_fixes(leaks).size(), 1u) << "no fix is known for other programs than Python's";
  leaks.recording.process.python_version = "3.12";
  const std::vector<LeakFix> fixes = leak_fixes(leaks);
  ASSERT_EQ(fixes.size(), 2u);
  EXPECT_EQ(fixes[0].fix, "keep loss.item() or loss.detach()");
  EXPECT_EQ(fixes[0].cause, "likely cause: losses are kept with their autograd graphs");
  EXPECT_EQ(fixes[0].bytes_per_step, 5120);
  EXPECT_EQ(fixes[1].bytes_per_step, 2560);
  EXPECT_EQ(fixes[1].every_steps, 4u);
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
