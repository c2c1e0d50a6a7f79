#include "analyze/leaks/leaks.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "unit/analyze/leak_loops.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::kGpu1;
using testing::kLoops;
using testing::kSteps;
using testing::Loop;
using testing::numbered;
using testing::run_slow_leak;
using testing::TrainingLoop;
using Stacks = TrainingLoop::Stacks;

/// Without a floor, unless the options set one.
Leaks leaks_of(const Store& store, LeakOptions options = {}) {
  if (!options.min_growth) options.min_growth = 0;
  Symbols symbols(store.definitions);
  auto leaks = analyze_leaks(store, symbols, options);
  EXPECT_TRUE(leaks.ok());
  return *leaks;
}

class LeaksOfLoop : public ::testing::TestWithParam<std::tuple<Loop, Stacks>> {};

TEST_P(LeaksOfLoop, MatchGroundTruth) {
  const auto& [loop, stacks] = GetParam();
  if (stacks == Stacks::none && loop.needs_stacks) GTEST_SKIP() << "cannot be seen without stacks";
  TrainingLoop training(stacks);
  loop.run(training);
  const Leaks leaks = leaks_of(training.scenario.store());
  if (loop.function == nullptr) {
    EXPECT_EQ(leaks.verdict, LeakVerdict::no_leak);
    EXPECT_TRUE(leaks.leaks.empty());
    return;
  }
  EXPECT_EQ(leaks.verdict, LeakVerdict::leak);
  ASSERT_EQ(leaks.leaks.size(), 1U);
  const LeakSite& leak = leaks.leaks[0];
  if (stacks != Stacks::none) {
    EXPECT_EQ(leak.stack.frames.at(leak.stack.call_site).function, loop.function);
  } else {
    EXPECT_TRUE(leak.stack.frames.empty());
  }
  // A step of the loop need not be one step of the clock that was found.
  const double per_step = static_cast<double>(leaks.steps.starts.size()) / kSteps;
  EXPECT_LE(leak.growth.bytes_per_step.low * per_step, loop.bytes_per_step * 1.02);
  EXPECT_GE(leak.growth.bytes_per_step.high * per_step, loop.bytes_per_step * 0.98);
  EXPECT_NEAR(leak.growth.bytes_per_step.value * per_step, loop.bytes_per_step, loop.bytes_per_step * 0.3);
}

INSTANTIATE_TEST_SUITE_P(Loops, LeaksOfLoop,
                         ::testing::Combine(::testing::ValuesIn(kLoops),
                                            ::testing::Values(Stacks::named_optimizer, Stacks::unnamed_optimizer,
                                                              Stacks::none)));

TEST(LeaksTest, ReportsRateAndStart) {
  TrainingLoop training(Stacks::named_optimizer);
  run_slow_leak(training);
  const Leaks leaks = leaks_of(training.scenario.store());
  EXPECT_EQ(leaks.steps.source, TrainingSteps::Source::optimizer);
  EXPECT_EQ(leaks.steps.starts.size(), 160U);
  EXPECT_EQ(leaks.warmup_steps, 16U);
  EXPECT_EQ(leaks.analyzed_steps, 142U);  // 160 - 16, minus the last, which has no recorded end, and the one before
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, 512);
  const LeakSite& leak = leaks.leaks.at(0);
  EXPECT_EQ(to_string(leak.device), "cuda:0");
  EXPECT_EQ(leak.growth.grown_steps, 142U);
  EXPECT_DOUBLE_EQ(leak.growth.bytes_per_step.low, 512);
  EXPECT_DOUBLE_EQ(leak.growth.bytes_per_step.high, 512);
  EXPECT_DOUBLE_EQ(leak.growth.blocks_per_step, 1);
  EXPECT_EQ(leak.growth.first_step, 16U);
  EXPECT_EQ(leak.growth.last_step, 157U);
  EXPECT_EQ(leak.held_blocks, 143U);  // of steps 16 to 158, seen at the start of step 159
  EXPECT_EQ(leak.held_bytes, 143U * 512);
  EXPECT_EQ(leak.first_step_ns, leaks.steps.starts[16].time_ns);
}

TEST(LeaksTest, TooFewStepsAreNotEnough) {
  for (const int steps : {11, 12}) {
    TrainingLoop training(Stacks::named_optimizer);
    training.run(steps, [&](int step) { training.allocate(numbered("kept", step), 512, "track"); });
    const Leaks leaks = leaks_of(training.scenario.store());
    EXPECT_EQ(leaks.verdict, steps == 11 ? LeakVerdict::insufficient_data : LeakVerdict::leak);
    EXPECT_EQ(leaks.insufficient, steps == 11 ? InsufficientData::too_few_steps : InsufficientData::none);
  }
}

TEST(LeaksTest, NothingThatRepeatsIsNotEnough) {
  testing::Scenario scenario;
  for (int block = 0; block < 500; ++block) {
    scenario.allocate(static_cast<std::uint64_t>(block), numbered("block", block),
                      static_cast<std::uint64_t>(block + 1) * 512, kGpu);
  }
  const Leaks leaks = leaks_of(scenario.store());
  EXPECT_EQ(leaks.verdict, LeakVerdict::insufficient_data);
  EXPECT_EQ(leaks.insufficient, InsufficientData::no_steps);
  EXPECT_EQ(leaks_of(testing::Scenario().store()).insufficient, InsufficientData::no_events);
}

TEST(LeaksTest, CallerChoosesTheWarmUp) {
  TrainingLoop training(Stacks::named_optimizer);
  training.run(kSteps, [&](int step) {
    if (step < 40) training.allocate(numbered("kept", step), 512, "cache");
  });
  LeakOptions options;
  options.warmup_steps = 60;
  const Leaks leaks = leaks_of(training.scenario.store(), options);
  EXPECT_EQ(leaks.analyzed_steps, 98U);
  EXPECT_EQ(leaks.non_leak_growth_count, 0U);
  EXPECT_EQ(leaks_of(training.scenario.store()).non_leak_growth.at(0).growth.classification, GrowthClass::stopped);
  options.warmup_steps = 4'000'000'000U;
  EXPECT_EQ(leaks_of(training.scenario.store(), options).verdict, LeakVerdict::insufficient_data);
}

TEST(LeaksTest, StepsMayBeGiven) {
  testing::Scenario scenario;
  LeakOptions options;
  for (std::uint64_t step = 0; step < 20; ++step) {
    options.step_starts_ns.push_back(step * 100);
    scenario.allocate(step * 100 + 50, "kept" + std::to_string(step), 1000 + step, kGpu);
  }
  const Leaks leaks = leaks_of(scenario.store(), options);
  EXPECT_EQ(leaks.steps.source, TrainingSteps::Source::given);
  ASSERT_EQ(leaks.leaks.size(), 1U);
  // Steps 2 to 17 are judged: 1002 to 1017 bytes, 1009.5 on average.
  EXPECT_DOUBLE_EQ(leaks.leaks[0].growth.bytes_per_step.value, 1009.5);
  EXPECT_EQ(leaks.leaks[0].requested_bytes, std::nullopt);  // no two blocks are of one size

  options.step_starts_ns = {100, 100};
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  EXPECT_FALSE(analyze_leaks(store, symbols, options).ok());
}

TEST(LeaksTest, EachDeviceByItself) {
  TrainingLoop training(Stacks::named_optimizer);
  training.run(kSteps, [&](int step) {
    training.scenario.allocate(training.scenario.events.back().time_ns, numbered("copy", step), 256, kGpu1);
  });
  const Store store = training.scenario.store();
  const Leaks leaks = leaks_of(store);
  ASSERT_EQ(leaks.leaks.size(), 1U);
  EXPECT_EQ(to_string(leaks.leaks[0].device), "cuda:1");
  EXPECT_EQ(leaks.leaks[0].requested_bytes, 256U);
  LeakOptions options;
  options.device = "cuda:0";
  EXPECT_EQ(leaks_of(store, options).verdict, LeakVerdict::no_leak);
}

TEST(LeaksTest, ListsTheFastestFirst) {
  TrainingLoop training(Stacks::named_optimizer);
  training.run(kSteps, [&](int step) {
    for (int place = 0; place < 3; ++place) {
      const auto size = static_cast<std::uint64_t>(512 * (place + 1));
      training.allocate(numbered("kept", step * 3 + place), size, numbered("place", place), place);
    }
  });
  LeakOptions options;
  options.top = 2;
  const Leaks leaks = leaks_of(training.scenario.store(), options);
  EXPECT_EQ(leaks.leak_count, 3U);
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, 512 + 1024 + 1536);
  ASSERT_EQ(leaks.leaks.size(), 2U);
  EXPECT_DOUBLE_EQ(leaks.leaks[0].growth.bytes_per_step.value, 1536);
  EXPECT_DOUBLE_EQ(leaks.leaks[1].growth.bytes_per_step.value, 1024);
}

Leaks leaks_above_floor(const Store& store, std::optional<std::uint64_t> min_growth = std::nullopt) {
  LeakOptions options;
  options.min_growth = min_growth;
  Symbols symbols(store.definitions);
  auto leaks = analyze_leaks(store, symbols, options);
  EXPECT_TRUE(leaks.ok());
  return *leaks;
}

TrainingLoop keeping(std::uint64_t bytes, std::uint64_t peak = 0) {
  TrainingLoop training(Stacks::named_optimizer);
  if (peak != 0) training.touch(peak, "load");
  training.run(kSteps, [&](int step) { training.allocate(numbered("kept", step), bytes, "track"); });
  return training;
}

TEST(LeaksTest, SlowGrowthIsCountedApart) {
  constexpr std::uint64_t kPeak = std::uint64_t{1} << 30;
  const Store slow = keeping(512, kPeak).scenario.store();
  const Leaks leaks = leaks_above_floor(slow);
  EXPECT_EQ(leaks.verdict, LeakVerdict::no_leak);
  EXPECT_EQ(leaks.leak_count, 0U);
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, 0);
  ASSERT_EQ(leaks.small_leak_count, 1U);
  EXPECT_DOUBLE_EQ(leaks.small_bytes_per_step, 512);
  EXPECT_EQ(leaks.small_leaks.at(0).held_bytes, 143U * 512) << "as without a floor";

  EXPECT_EQ(leaks_above_floor(slow, 0).leak_count, 1U);
  EXPECT_EQ(leaks_above_floor(slow, 512).leak_count, 1U);
  EXPECT_EQ(leaks_above_floor(slow, 513).leak_count, 0U);
  EXPECT_EQ(leaks_above_floor(keeping(1024, kPeak).scenario.store()).leak_count, 1U) << "1 KiB is the floor";
}

// 143 steps of 512 bytes are 73,216 bytes: 1% of 7,321,600.
TEST(LeaksTest, SlowGrowthOfOnePercentOfThePeakIsALeak) {
  TrainingLoop training = keeping(512, 64'000'000);
  const auto peak_of = [](const Store& store) { return store.devices.front().peak_allocated_bytes; };
  ASSERT_GT(peak_of(training.scenario.store()), 7'321'600U);
  EXPECT_EQ(leaks_above_floor(training.scenario.store()).leak_count, 0U);
  training = keeping(512);
  ASSERT_LT(peak_of(training.scenario.store()), 7'321'600U);
  EXPECT_EQ(leaks_above_floor(training.scenario.store()).leak_count, 1U);
}

// Epochs of 20 steps, with kept blocks freed at their end: the last step's block lives for less than a step.
TEST(LeaksTest, BlocksKeptAndFreedTogetherAreListedSeparately) {
  TrainingLoop training(Stacks::named_optimizer);
  training.run(kSteps, [&](int step) {
    training.allocate(numbered("output", step), 1 << 20, "collect");
    training.allocate(numbered("batch", step), 1 << 20, "prefetch");
    if (step > 0) training.free(numbered("batch", step - 1));
    if (step % 20 != 19) return;
    for (int old = step - 19; old <= step; ++old) training.free(numbered("output", old));
  });
  const Leaks leaks = leaks_of(training.scenario.store());
  EXPECT_EQ(leaks.verdict, LeakVerdict::no_leak);
  ASSERT_EQ(leaks.kept_over_steps.size(), 1U);
  const KeptSite& kept = leaks.kept_over_steps[0];
  EXPECT_EQ(kept.stack.frames.at(kept.stack.call_site).function, "collect");
  EXPECT_EQ(kept.steps, 20U);
  EXPECT_EQ(kept.times, 8U);
  EXPECT_EQ(kept.blocks, 19U);
  EXPECT_EQ(kept.bytes, std::uint64_t{19} << 20);
}

TEST(LeaksTest, StacksOfOneLineAreOneLeak) {
  TrainingLoop training(Stacks::named_optimizer);
  testing::Scenario& scenario = training.scenario;
  const LocationId keep = scenario.python("keep", "project/train.py", 70);
  std::vector<StackId> stacks;
  for (std::uint32_t caller = 0; caller < 3; ++caller) {
    stacks.push_back(scenario.stack({scenario.python("main", "project/train.py", 90 + caller), keep}));
  }
  const StackId other = scenario.stack({scenario.python("keep", "project/train.py", 71)});
  training.run(kSteps, [&](int step) {
    const auto add = [&](const char* name, std::uint64_t bytes, StackId stack) {
      scenario.allocate(scenario.events.back().time_ns, numbered(name, step), bytes, kGpu, stack);
    };
    add("a", 1024, stacks[0]);
    add("b", 4096, stacks[1]);
    if (step % 2 == 0) add("c", 2048, stacks[2]);
    add("d", 512, other);
  });
  const Leaks leaks = leaks_of(scenario.store());
  ASSERT_EQ(leaks.leaks.size(), 2U);
  const LeakSite& joined = leaks.leaks[0];
  EXPECT_EQ(joined.stack_ids, (std::vector{stacks[1], stacks[0], stacks[2]})) << "fastest first; two are as fast";
  EXPECT_EQ(joined.stack.frames.front().line, 91U);
  EXPECT_DOUBLE_EQ(joined.growth.bytes_per_step.value, 1024 + 4096 + 2048 / 2);
  EXPECT_DOUBLE_EQ(joined.growth.blocks_per_step, 2.5);
  EXPECT_EQ(joined.held_blocks, 143U + 143U + 72U);
  EXPECT_EQ(leaks.leaks[1].stack_ids, std::vector{other});
}

// As where the name of a module is unknown in some steps: its stack is another one then.
TEST(LeaksTest, AnotherStackOfTheLineFillsTheGapsOfALeak) {
  for (const bool in_gaps : {true, false}) {
    TrainingLoop training(Stacks::named_optimizer);
    testing::Scenario& scenario = training.scenario;
    const LocationId line = scenario.python("keep", "project/train.py", 70);
    const StackId usual = scenario.stack({line});
    const StackId rare = scenario.stack({scenario.python("main", "project/train.py", 90), line});
    training.run(kSteps, [&](int step) {
      const auto add = [&](const char* name, StackId stack) {
        scenario.allocate(scenario.events.back().time_ns, numbered(name, step), 4096, kGpu, stack);
      };
      const bool gap = step == kSteps - 40 || step == kSteps - 20;
      if (!gap || !in_gaps) add("usual", usual);
      if (gap) add("rare", rare);
    });
    const Leaks leaks = leaks_of(scenario.store());
    ASSERT_EQ(leaks.leaks.size(), 1U);
    EXPECT_DOUBLE_EQ(leaks.leaks[0].growth.bytes_per_step.value, 4096);
    EXPECT_EQ(leaks.leaks[0].growth.grown_steps, leaks.leaks[0].growth.analyzed_steps);
    EXPECT_EQ(leaks.leaks[0].stack_ids.size(), in_gaps ? 2U : 1U) << "in the same step it is other memory";
  }
}

}  // namespace
}  // namespace tidemark
