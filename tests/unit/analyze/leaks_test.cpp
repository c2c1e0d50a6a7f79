// Loops whose truth is known: which leak, where and how fast, and which do not.
#include "analyze/leaks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "unit/analyze/training_loop.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::kGpu1;
using testing::TrainingLoop;
using Stacks = TrainingLoop::Stacks;

constexpr int kSteps = 160;

std::string numbered(const char* name, int number) {
  return name + std::to_string(number);
}

struct Loop {
  const char* name;
  const char* function;  // that leaks; null: none does
  double bytes_per_step;
  void (*run)(TrainingLoop& loop);
  bool needs_stacks = false;  // without them nothing tells the leak from the rest
};

void PrintTo(const Loop& loop, std::ostream* out) {
  *out << loop.name;
}

void nothing(int) {}

void run_slow_leak(TrainingLoop& loop) {
  loop.run(kSteps, [&](int step) { loop.allocate(numbered("kept", step), 512, "track"); });
}

const Loop kLoops[] = {
    {"slow leak", "track", 512, run_slow_leak},
    {"slow leak, all freed at exit", "track", 512,
     [](TrainingLoop& loop) {
       run_slow_leak(loop);
       loop.free_everything();
     }},
    {"slow leak in noise", "track", 512,
     [](TrainingLoop& loop) {
       loop.varying = true;
       run_slow_leak(loop);
     }},
    {"leak from the stack of the noise", "forward", 512,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, [&](int step) { loop.allocate(numbered("kept", step), 512, "forward", 1); });
     }},
    {"leak of varying sizes", "track", 32.5 * 64,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, [&](int step) { loop.allocate(numbered("kept", step), loop.next_length(), "track"); });
     }},
    {"list of losses", "loss", 512,
     [](TrainingLoop& loop) {
       loop.keep_losses = true;
       loop.run(kSteps, nothing);
     }},
    {"leak of evaluations", "results", 409.6,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step % 10 != 9) return;
         for (int batch = 0; batch < 3; ++batch) loop.evaluate();
         loop.allocate(numbered("kept", step), 4096, "results");
       });
     }},
    {"leak from one of two alternating phases", "generator", 1024,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step % 2 == 0) loop.allocate(numbered("kept", step), 2048, "generator");
         if (step % 2 == 1) loop.touch(2048, "discriminator");
       });
     }},
    {"leak in every micro-step's sum", "loss", 2048,
     [](TrainingLoop& loop) {
       loop.micro_steps = 4;
       loop.keep_losses = true;
       loop.run(kSteps, nothing);
     }},
    {"leak that begins late", "track", 512,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step >= 70) loop.allocate(numbered("kept", step), 512, "track");
       });
     }},
    {"leak now and then", "track", 128,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (loop.random() % 4 == 0) loop.allocate(numbered("kept", step), 512, "track");
       });
     }},
    {"leak beside garbage of the same stack", "track", 512,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "track");
         loop.allocate(numbered("garbage", step), 1024, "track");
         if (step % 20 != 19) return;
         for (int old = step - 19; old <= step; ++old) loop.free(numbered("garbage", old));
       });
     }},
    {"history that is concatenated", "history", 1024,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("history", step), static_cast<std::uint64_t>(step + 1) * 1024, "history");
         if (step > 0) loop.free(numbered("history", step - 1));
       });
     },
     true},

    {"fixed shapes", nullptr, 0, [](TrainingLoop& loop) { loop.run(kSteps, nothing); }},
    {"all freed at exit", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, nothing);
       loop.free_everything();
     }},
    {"varying lengths", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, nothing);
     }},
    {"warm-up", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step < 12) loop.allocate(numbered("buffer", step), 100'000, "workspace");
       });
     }},
    {"gradient accumulation", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.micro_steps = 4;
       loop.run(kSteps, nothing);
     }},
    {"gradient accumulation of varying lengths", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.micro_steps = 4;
       loop.varying = true;
       loop.run(kSteps, nothing);
     }},
    {"evaluation every 10 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         for (int batch = 0; step % 10 == 9 && batch < 5; ++batch) loop.evaluate();
       });
     }},
    {"metrics of an evaluation kept up to the next", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step % 10 != 9) return;
         loop.allocate(numbered("metric", step), 4096, "results");
         if (step > 10) loop.free(numbered("metric", step - 10));
       });
     }},
    {"garbage collected every 20 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("garbage", step), 1024, "track");
         if (step % 20 != 15) return;
         for (int old = std::max(0, step - 19); old <= step; ++old) loop.free(numbered("garbage", old));
       });
     }},
    {"losses of an epoch of 50 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "track");
         for (int old = step - 49; step % 50 == 49 && old <= step; ++old) loop.free(numbered("kept", old));
       });
     }},
    {"cache of masks, one for each of 8 lengths", nullptr, 0,
     [](TrainingLoop& loop) {
       std::vector<bool> known(8);
       loop.run(kSteps, [&](int step) {
         const std::uint32_t length = loop.random() % 8;
         if (!known[length]) loop.allocate(numbered("mask", step), 1000 * (length + 1), "mask");
         known[length] = true;
       });
     }},
    {"cache that fills for 40 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step < 40) loop.allocate(numbered("kept", step), 512, "cache");
       });
     }},
    {"cache that fills ever slower", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (std::floor(20 * std::log(step + 2)) != std::floor(20 * std::log(step + 1)) && step < 110) {
           loop.allocate(numbered("kept", step), 512, "cache");
         }
       });
     }},
    {"queue of the last 16 losses", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "queue");
         if (step >= 16) loop.free(numbered("kept", step - 16));
       });
     }},
    {"buffer of 32 samples, replaced at random", nullptr, 0,
     [](TrainingLoop& loop) {
       std::vector<int> held;
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "buffer");
         held.push_back(step);
         if (held.size() <= 32) return;
         const std::size_t out = loop.random() % 32;
         loop.free(numbered("kept", held[out]));
         held.erase(held.begin() + static_cast<std::ptrdiff_t>(out));
       });
     }},
    {"large buffer in mid-training", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step == 80 || step == 100) loop.allocate(numbered("kept", step), 1 << 20, "profile");
       });
     }},
    {"longer batches from step to step", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.length_of_step = [](int step) { return std::uint64_t{512} + 16U * static_cast<std::uint64_t>(step); };
       loop.run(kSteps, nothing);
     }},
};

Leaks analyze(const Store& store, const LeakOptions& options = {}) {
  Symbols symbols(store.definitions);
  auto leaks = analyze_leaks(store, symbols, options);
  EXPECT_TRUE(leaks.ok());
  return *leaks;
}

class LeaksOfLoop : public ::testing::TestWithParam<std::tuple<Loop, Stacks>> {};

TEST_P(LeaksOfLoop, AreWhatTheyAre) {
  const auto& [loop, stacks] = GetParam();
  if (stacks == Stacks::none && loop.needs_stacks) GTEST_SKIP() << "cannot be seen without stacks";
  TrainingLoop training(stacks);
  loop.run(training);
  const Leaks leaks = analyze(training.scenario.store());
  if (loop.function == nullptr) {
    EXPECT_EQ(leaks.verdict, LeakVerdict::no_leak);
    EXPECT_TRUE(leaks.leaks.empty());
    return;
  }
  EXPECT_EQ(leaks.verdict, LeakVerdict::leak);
  ASSERT_EQ(leaks.leaks.size(), 1U);
  const LeakPlace& leak = leaks.leaks[0];
  if (stacks != Stacks::none) {
    EXPECT_EQ(leak.stack.frames.at(leak.stack.place).function, loop.function);
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

TEST(LeaksTest, SaysHowMuchAndSinceWhen) {
  TrainingLoop training(Stacks::named_optimizer);
  run_slow_leak(training);
  const Leaks leaks = analyze(training.scenario.store());
  EXPECT_EQ(leaks.steps.source, TrainingSteps::Source::optimizer);
  EXPECT_EQ(leaks.steps.starts.size(), 160U);
  EXPECT_EQ(leaks.warmup_steps, 16U);
  EXPECT_EQ(leaks.judged_steps, 142U);  // 160 - 16, less the last, whose end is not seen, and the one before
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, 512);
  const LeakPlace& leak = leaks.leaks.at(0);
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
    const Leaks leaks = analyze(training.scenario.store());
    EXPECT_EQ(leaks.verdict, steps == 11 ? LeakVerdict::insufficient_data : LeakVerdict::leak);
    EXPECT_EQ(leaks.doubt, steps == 11 ? LeakDoubt::too_few_steps : LeakDoubt::none);
  }
}

TEST(LeaksTest, NothingThatRepeatsIsNotEnough) {
  testing::Scenario scenario;
  for (int block = 0; block < 500; ++block) {
    scenario.allocate(static_cast<std::uint64_t>(block), numbered("block", block),
                      static_cast<std::uint64_t>(block + 1) * 512, kGpu);
  }
  const Leaks leaks = analyze(scenario.store());
  EXPECT_EQ(leaks.verdict, LeakVerdict::insufficient_data);
  EXPECT_EQ(leaks.doubt, LeakDoubt::no_steps);
  EXPECT_EQ(analyze(testing::Scenario().store()).doubt, LeakDoubt::no_events);
}

TEST(LeaksTest, WarmUpIsWhatTheCallerSays) {
  TrainingLoop training(Stacks::named_optimizer);
  training.run(kSteps, [&](int step) {
    if (step < 40) training.allocate(numbered("kept", step), 512, "cache");
  });
  LeakOptions options;
  options.warmup_steps = 60;
  const Leaks leaks = analyze(training.scenario.store(), options);
  EXPECT_EQ(leaks.judged_steps, 98U);
  EXPECT_EQ(leaks.growth_count, 0U);
  EXPECT_EQ(analyze(training.scenario.store()).growths.at(0).growth.finding, GrowthFinding::stopped);
  options.warmup_steps = 4'000'000'000U;
  EXPECT_EQ(analyze(training.scenario.store(), options).verdict, LeakVerdict::insufficient_data);
}

TEST(LeaksTest, StepsMayBeGiven) {
  testing::Scenario scenario;
  LeakOptions options;
  for (std::uint64_t step = 0; step < 20; ++step) {
    options.step_starts_ns.push_back(step * 100);
    scenario.allocate(step * 100 + 50, "kept" + std::to_string(step), 1000 + step, kGpu);
  }
  const Leaks leaks = analyze(scenario.store(), options);
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
  const Leaks leaks = analyze(store);
  ASSERT_EQ(leaks.leaks.size(), 1U);
  EXPECT_EQ(to_string(leaks.leaks[0].device), "cuda:1");
  EXPECT_EQ(leaks.leaks[0].requested_bytes, 256U);
  LeakOptions options;
  options.device = "cuda:0";
  EXPECT_EQ(analyze(store, options).verdict, LeakVerdict::no_leak);
}

TEST(LeaksTest, ListsTheFastestFirst) {
  TrainingLoop training(Stacks::named_optimizer);
  training.run(kSteps, [&](int step) {
    for (int place = 0; place < 3; ++place) {
      const auto size = static_cast<std::uint64_t>(512 * (place + 1));
      training.allocate(numbered("kept", step * 3 + place), size, numbered("place", place));
    }
  });
  LeakOptions options;
  options.top = 2;
  const Leaks leaks = analyze(training.scenario.store(), options);
  EXPECT_EQ(leaks.leak_count, 3U);
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, 512 + 1024 + 1536);
  ASSERT_EQ(leaks.leaks.size(), 2U);
  EXPECT_DOUBLE_EQ(leaks.leaks[0].growth.bytes_per_step.value, 1536);
  EXPECT_DOUBLE_EQ(leaks.leaks[1].growth.bytes_per_step.value, 1024);
}

}  // namespace
}  // namespace tidemark
