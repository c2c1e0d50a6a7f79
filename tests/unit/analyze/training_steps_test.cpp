#include "analyze/steps/training_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "unit/analyze/training_loop.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::TrainingLoop;
using Stacks = TrainingLoop::Stacks;
using Source = TrainingSteps::Source;

TrainingSteps find(Stacks stacks, int steps, const std::function<void(TrainingLoop&)>& change = {}) {
  TrainingLoop loop(stacks);
  if (change) change(loop);
  loop.run(steps, [](int) {});
  return find_training_steps(loop.scenario.store());
}

TEST(TrainingStepsTest, TheOptimizerIsTheClock) {
  const TrainingSteps steps = find(Stacks::named_optimizer, 30);
  EXPECT_EQ(steps.source, Source::optimizer);
  EXPECT_EQ(steps.starts.size(), 30U);
  EXPECT_GT(steps.regularity, 0.95);  // the state of the first step is made nowhere else
}

// A file of a flight recorder begins with the blocks that were alive before, at its time 0: the optimizer's state too.
TEST(TrainingStepsTest, InitialBlocksOfAWindowAreNoStep) {
  TrainingLoop loop(Stacks::named_optimizer);
  std::size_t until = 0;  // events of the first ten steps
  loop.run(30, [&](int step) { until = step == 9 ? loop.scenario.events.size() : until; });
  Store store = loop.scenario.store();
  store.window_began_ns = 1'000'000;
  for (std::size_t change = 0; change < until; ++change) store.live_changes[change].time_ns = 0;
  const TrainingSteps steps = find_training_steps(store);
  EXPECT_EQ(steps.source, Source::optimizer);
  EXPECT_EQ(steps.starts.size(), 20U);
  EXPECT_GE(steps.starts.front().event_count, until);
}

// Marks of the optimizer at each of `times`, named so.
void annotate(testing::Scenario& scenario, const std::vector<std::uint64_t>& times, const std::string& name) {
  for (const std::uint64_t time_ns : times) {
    scenario.mark(Mark::Kind::range_begin, time_ns, name);
    scenario.mark(Mark::Kind::range_end, time_ns + 1, name);
  }
}

TEST(TrainingStepsTest, NamesThatSayStepComeBeforeAllElse) {
  TrainingLoop loop(Stacks::named_optimizer);
  loop.run(30, [](int) {});
  annotate(loop.scenario, {10, 20, 30, 40, 50}, "Optimizer.step#SGD.step");
  annotate(loop.scenario, {12, 22, 32, 42}, "Train_Step");
  for (const std::uint64_t time_ns : {12U, 22U, 32U}) annotate(loop.scenario, {time_ns}, "epoch");
  const TrainingSteps named = find_training_steps(loop.scenario.store());
  EXPECT_EQ(named.source, Source::annotation);
  ASSERT_EQ(named.starts.size(), 4U);
  EXPECT_EQ(named.starts[0].time_ns, 12U);
  for (const std::uint64_t n : {1U, 2U, 3U, 4U})
    annotate(loop.scenario, {n * 10 + 1}, "ProfilerStep#" + std::to_string(n));
  EXPECT_EQ(find_training_steps(loop.scenario.store()).starts[0].time_ns, 11U);
}

TEST(TrainingStepsTest, StepsThatAPlanCountedAreExactHoweverFew) {
  TrainingLoop loop(Stacks::named_optimizer);
  loop.run(30, [](int) {});
  annotate(loop.scenario, {12, 22, 32, 42}, "step");
  for (const std::uint64_t n : {1U, 2U}) annotate(loop.scenario, {n * 10 + 1}, "Tidemark.step#" + std::to_string(n));
  const TrainingSteps planned = find_training_steps(loop.scenario.store());
  EXPECT_EQ(planned.source, Source::annotation);
  ASSERT_EQ(planned.starts.size(), 2U);
  EXPECT_EQ(planned.starts[1].time_ns, 21U);
  EXPECT_EQ(planned.count(), 2U);

  // A program that runs to its end marks a step more than it makes.
  annotate(loop.scenario, {loop.scenario.events.back().time_ns + 1}, "Tidemark.step#3");
  const TrainingSteps whole = find_training_steps(loop.scenario.store());
  EXPECT_EQ(whole.starts.size(), 3U);
  EXPECT_EQ(whole.count(), 2U);
}

// A plan marks the beginning of the first step. If no optimizer of PyTorch follows, the steps follow from repetition.
TEST(TrainingStepsTest, WithoutStepEndsOfAPlanRepetitionDecides) {
  TrainingLoop loop(Stacks::unnamed_optimizer);
  loop.run(30, [](int) {});
  annotate(loop.scenario, {1}, "Tidemark.step#1");
  const TrainingSteps found = find_training_steps(loop.scenario.store());
  EXPECT_EQ(found.source, Source::stack);
  EXPECT_EQ(found.starts.size(), 30U);

  TrainingLoop one(Stacks::named_optimizer);  // the only step of a plan of one
  one.run(1, [](int) {});
  annotate(one.scenario, {1}, "Tidemark.step#1");
  EXPECT_EQ(find_training_steps(one.scenario.store()).source, Source::annotation);
}

// A graph that is retained over all steps: each backward pass goes through all steps before it, too.
TEST(TrainingStepsTest, BackwardPassesThatBecomeLongerAreOfOneStepEach) {
  TrainingLoop loop(Stacks::unnamed_optimizer);
  loop.run(30, [&](int step) {
    for (int earlier = 0; earlier < 10 * step; ++earlier) loop.touch(512, "backward", earlier % 5);
  });
  const TrainingSteps found = find_training_steps(loop.scenario.store());
  EXPECT_EQ(found.source, Source::stack);
  EXPECT_EQ(found.starts.size(), 30U);
}

TEST(TrainingStepsTest, TheOptimizersMarksMustFitWhatRepeats) {
  TrainingLoop loop(Stacks::unnamed_optimizer);
  loop.run(30, [](int) {});
  const Store plain = loop.scenario.store();
  std::vector<std::uint64_t> times;
  for (const TrainingSteps::Start& start : find_training_steps(plain).starts) times.push_back(start.time_ns);
  ASSERT_EQ(times.size(), 30U);
  annotate(loop.scenario, times, "Optimizer.step#SGD.step");
  EXPECT_EQ(find_training_steps(loop.scenario.store()).source, Source::annotation);
  EXPECT_EQ(find_training_steps(loop.scenario.store()).starts.size(), 30U);

  TrainingLoop other(Stacks::unnamed_optimizer);  // an optimizer that only runs in the first tenth of the training
  other.run(30, [](int) {});
  annotate(other.scenario, {times[0], times[0] + 1, times[1], times[1] + 1, times[2]}, "Optimizer.step#SGD.step");
  EXPECT_EQ(find_training_steps(other.scenario.store()).source, Source::stack);
}

TEST(TrainingStepsTest, MicroStepsAreNotStepsOfTheOptimizer) {
  const TrainingSteps steps = find(Stacks::named_optimizer, 30, [](TrainingLoop& loop) { loop.micro_steps = 4; });
  EXPECT_EQ(steps.starts.size(), 30U);
}

TEST(TrainingStepsTest, WithoutItsNameTheStackAtLowWaterIs) {
  TrainingLoop loop(Stacks::unnamed_optimizer);
  loop.run(30, [](int) {});
  const Store store = loop.scenario.store();
  const TrainingSteps steps = find_training_steps(store);
  EXPECT_EQ(steps.source, Source::stack);
  EXPECT_EQ(steps.starts.size(), 30U);
  const Location& location = store.definitions.locations[store.definitions.stacks[steps.anchor.value].location.value];
  EXPECT_EQ(store.definitions.strings[location.function.value], "load");
}

TEST(TrainingStepsTest, WithoutStacksSizesAre) {
  const TrainingSteps fixed = find(Stacks::none, 30);
  EXPECT_EQ(fixed.source, Source::sizes);
  EXPECT_EQ(fixed.starts.size(), 30U);
  const TrainingSteps varying = find(Stacks::none, 30, [](TrainingLoop& loop) { loop.varying = true; });
  EXPECT_EQ(varying.source, Source::sizes);
  EXPECT_NEAR(static_cast<double>(varying.starts.size()), 30, 1);
}

// An evaluation every ten steps comes back more evenly than steps do.
TEST(TrainingStepsTest, WithoutStacksAnEpochIsNotAStep) {
  TrainingLoop loop(Stacks::none);
  loop.run(200, [&](int step) {
    if (step % 10 != 9) return;
    for (std::uint64_t size = 1000; size < 1008; ++size) loop.touch(size, "evaluate");
  });
  const TrainingSteps steps = find_training_steps(loop.scenario.store());
  EXPECT_NEAR(static_cast<double>(steps.starts.size()), 200, 1);
}

// The same function for each of six layers, called in a row in the forward pass only.
TEST(TrainingStepsTest, LayersAreNotSteps) {
  testing::Scenario scenario;
  std::vector<StackId> parts;
  for (std::uint32_t line = 1; line <= 10; ++line)
    parts.push_back(scenario.stack({scenario.python("f", "m.py", line)}));
  std::uint64_t time = 0;
  for (int step = 0; step < 20; ++step) {
    const auto name = [&](int block) { return std::to_string(step) + "." + std::to_string(block); };
    for (int layer = 0; layer < 6; ++layer) {
      for (int part = 0; part < 8; ++part)
        scenario.allocate(++time, name(layer * 8 + part), 4096, kGpu, parts[static_cast<std::size_t>(part)]);
    }
    scenario.allocate(++time, name(48), 4096, kGpu, parts[8]);
    scenario.allocate(++time, name(49), 4096, kGpu, parts[9]);
    for (int block = 0; block < 50; ++block) scenario.free(++time, name(block));
  }
  EXPECT_EQ(find_training_steps(scenario.store()).starts.size(), 20U);
}

// Two steps of a model with all layers on one line of code, as in a plan without marks.
TEST(TrainingStepsTest, LayersOfFewStepsAreNotSteps) {
  const auto steps_with_optimizer_at = [](std::initializer_list<int> optimizer_steps) {
    testing::Scenario scenario;
    const StackId layer = scenario.push({}, scenario.python("forward", "model.py", 84));
    const StackId attention = scenario.push(layer, scenario.python("attend", "model.py", 60));
    const StackId optimizer = scenario.push({}, scenario.python("step", "/site-packages/torch/optim/adamw.py", 9));
    std::uint64_t time = 0;
    const auto touch = [&](StackId stack) {
      scenario.allocate(time += 1000, "touched", 4096, kGpu, stack);
      scenario.free(time += 1000, "touched");
    };
    for (int step = 0; step < 8; ++step) {
      touch(layer);
      touch(attention);
      if (std::find(optimizer_steps.begin(), optimizer_steps.end(), step) != optimizer_steps.end()) touch(optimizer);
    }
    return find_training_steps(scenario.store());
  };
  EXPECT_EQ(steps_with_optimizer_at({3, 7}).source, TrainingSteps::Source::none);
  // Allocations in the first step only contain nothing about the others.
  EXPECT_EQ(steps_with_optimizer_at({0}).starts.size(), 8U);
}

// model.to("cuda") copies parameters and frees their memory on the CPU; a list that grows by two tensors looks the same
// on the device, and is a loop.
TEST(TrainingStepsTest, MovingAModelHasNoSteps) {
  const auto steps_below = [](const std::string& function) {
    testing::Scenario scenario;
    const StackId caller = scenario.push({}, scenario.python(function, "/site-packages/torch/nn/modules/module.py", 5));
    const StackId weight = scenario.push(caller, scenario.python("copy", "module.py", 7));
    const StackId bias = scenario.push(caller, scenario.python("copy", "module.py", 8));
    std::uint64_t time = 0;
    for (int layer = 0; layer < 40; ++layer) {
      const std::string name = std::to_string(layer);
      scenario.allocate(++time, "host" + name, 8192, testing::kCpu);
      scenario.allocate(++time, "weight" + name, 8192, kGpu, weight);
      scenario.free(++time, "host" + name);
      scenario.allocate(++time, "bias" + name, 64, kGpu, bias);
    }
    return find_training_steps(scenario.store()).starts.size();
  };
  EXPECT_EQ(steps_below("Module._apply"), 0U);
  EXPECT_EQ(steps_below("Model.__init__"), 0U);
  EXPECT_EQ(steps_below("collect"), 40U);
}

TEST(TrainingStepsTest, NothingThatRepeatsHasNoSteps) {
  testing::Scenario scenario;
  for (int block = 0; block < 100; ++block) {
    scenario.allocate(static_cast<std::uint64_t>(block), std::to_string(block), static_cast<std::uint64_t>(block),
                      kGpu);
  }
  EXPECT_EQ(find_training_steps(scenario.store()).source, Source::none);
  EXPECT_EQ(find_training_steps(testing::Scenario().store()).source, Source::none);
}

TEST(TrainingStepsTest, GivenTimesAreTaken) {
  testing::Scenario scenario;
  for (const std::uint64_t time : {10U, 20U, 30U}) scenario.allocate(time, std::to_string(time), 1, kGpu);
  const std::vector<std::uint64_t> times = {5, 20, 99};
  const TrainingSteps steps = given_training_steps(scenario.store(), times);
  ASSERT_EQ(steps.starts.size(), 3U);
  EXPECT_EQ(steps.starts[0].event_count, 0U);
  EXPECT_EQ(steps.starts[1].event_count, 2U);  // the event at 20 has happened
  EXPECT_EQ(steps.starts[2].event_count, 3U);
}

// Periods by hand. Boundaries at "a": a b c | a b c | a b c c | a. a and b occur once in all three periods, c once in
// two of three, which is too irregular to count: keys 2/3; occurrences (3 + 3) / (4 + 3 + 4), because the last a is in
// no period.
TEST(TrainingStepsTest, TheScoreIsTheShareOfWhatRepeats) {
  KeySequence sequence;
  for (const std::uint64_t count : {4U, 3U, 4U}) {
    StepKey key;
    key.count = count;
    sequence.keys.push_back(key);
  }
  std::uint32_t position = 0;
  for (const std::uint32_t key : {0U, 1U, 2U, 0U, 1U, 2U, 0U, 1U, 2U, 2U, 0U})
    sequence.occurrences.push_back({position++, key});
  EXPECT_NEAR(step_score(sequence, {0, 3, 6, 10}), std::sqrt(2.0 / 3 * 6 / 11), 1e-12);
}

}  // namespace
}  // namespace tidemark
