#include "analyze/advice/patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/common/earlier_frees.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

// Four steps, from 100, 200, 300 and 400 ns. Each allocates activations (1000) and outputs (400); the outputs of the
// step before go when the new ones are there, then the activations. Weights (50) stay.
//
//   time   what                          allocated
//      1   weights                              50
//    110   activations                        1050
//    120   outputs                            1450
//    130   activations go                      450
//    210   activations                        1450
//    220   outputs                            1850   the peak; also at 320 and 420
//    225   outputs of the step before go      1450
//    230   activations go                      450
Scenario double_buffer(std::uint64_t steps = 4) {
  Scenario scenario;
  const LocationId main = scenario.python("main", "/w/train.py", 9);
  const StackId init = scenario.stack({main, scenario.python("init", "/w/model.py", 1)});
  const StackId forward = scenario.stack({main, scenario.python("forward", "/w/model.py", 3)});
  const StackId head = scenario.stack({main, scenario.python("head", "/w/model.py", 7)});
  scenario.allocate(1, "weights", 50, kGpu, init);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const std::string number = std::to_string(step);
    scenario.mark(Mark::Kind::point, 100 * step, "step " + number);
    scenario.allocate(100 * step + 10, "activations" + number, 1000, kGpu, forward);
    scenario.allocate(100 * step + 20, "outputs" + number, 400, kGpu, head);
    if (step > 1) scenario.free(100 * step + 25, "outputs" + std::to_string(step - 1));
    scenario.free(100 * step + 30, "activations" + number);
  }
  return scenario;
}

Patterns patterns_of(const Store& store, const PatternsOptions& options = {}) {
  Symbols symbols(store.definitions);
  auto result = analyze_patterns(store, symbols, options);
  EXPECT_TRUE(result.ok());
  return std::move(*result);
}

LifetimeUsage held(const PatternsDevice& device, Lifetime lifetime) {
  return device.held[static_cast<std::size_t>(lifetime)];
}

TEST(Patterns, BlocksHeldUntilReplacedAreFoundWithTheirSaving) {
  const Patterns patterns = patterns_of(double_buffer().store());
  EXPECT_EQ(patterns.steps, 4U);
  ASSERT_EQ(patterns.devices.size(), 1U);
  const PatternsDevice& device = patterns.devices[0];
  EXPECT_EQ(device.totals.peak_allocated_bytes, 1850U);
  ASSERT_TRUE(device.kept_into_next_step);
  const Pattern& pattern = *device.kept_into_next_step;
  EXPECT_EQ(pattern.count, 3U) << "nothing replaces the last";
  EXPECT_EQ(pattern.peak_bytes, 400U);
  EXPECT_EQ(pattern.reduced_peak_bytes, 1450U) << "as in the first step";
  EXPECT_EQ(pattern.reduced_peak_at_ns, 120U);
  EXPECT_EQ(device.avoidable_peak_bytes(pattern), 400U);
  ASSERT_EQ(pattern.rows.size(), 1U);
  EXPECT_EQ(pattern.rows[0].stack.frames.back().function, "head");
  EXPECT_EQ(std::tuple(pattern.rows[0].peak_bytes, pattern.rows[0].peak_blocks, pattern.rows[0].count),
            std::tuple(400U, 1U, 3U));
  EXPECT_EQ(pattern.rows[0].bytes, 1200U);
}

TEST(Patterns, FreedRightAfterAnAllocationCountAsIfFreedBefore) {
  const Patterns patterns = patterns_of(double_buffer().store());
  const Pattern& pattern = patterns.devices[0].freed_after_allocation;
  EXPECT_EQ(pattern.count, 7U) << "four activations and three outputs";
  EXPECT_EQ(pattern.peak_bytes, 1400U);
  EXPECT_EQ(pattern.reduced_peak_bytes, 1450U) << "when the activations of the second step are allocated";
  EXPECT_EQ(pattern.reduced_peak_at_ns, 210U);
  ASSERT_EQ(pattern.rows.size(), 2U);
  EXPECT_EQ(pattern.rows[0].peak_bytes, 1000U);
  EXPECT_EQ(pattern.rows[1].peak_bytes, 400U);
}

TEST(Patterns, ThePeakIsTheSumOfLifetimes) {
  const Patterns patterns = patterns_of(double_buffer().store());
  const PatternsDevice& device = patterns.devices[0];
  EXPECT_EQ(held(device, Lifetime::never_freed).bytes, 50U);
  EXPECT_EQ(held(device, Lifetime::temporary).bytes, 1000U) << "one other allocation while they live";
  EXPECT_EQ(held(device, Lifetime::across_steps).bytes, 800U) << "the outputs of the first step and the second";
  EXPECT_EQ(held(device, Lifetime::across_steps).blocks, 2U);
  EXPECT_EQ(held(device, Lifetime::within_step).blocks, 0U);
  EXPECT_EQ(held(device, Lifetime::freed).blocks, 0U);
}

TEST(Patterns, WithoutStepsNothingIsReplaced) {
  const Patterns patterns = patterns_of(double_buffer(2).store());  // two are too few to be steps
  EXPECT_EQ(patterns.steps, 0U);
  const PatternsDevice& device = patterns.devices[0];
  EXPECT_EQ(device.totals.peak_allocated_bytes, 1850U);
  EXPECT_FALSE(device.kept_into_next_step);
  EXPECT_EQ(held(device, Lifetime::never_freed).bytes, 450U) << "the second outputs, too";
  EXPECT_EQ(held(device, Lifetime::freed).bytes, 400U);
  EXPECT_EQ(device.freed_after_allocation.reduced_peak_bytes, 1450U);
}

// The last step's blocks are not replaced: the program is over. Its step has ended when a fifth begins.
TEST(Patterns, TheLastBlockOfAPatternCountsToo) {
  const Store store = double_buffer().store();
  const TrainingSteps steps = given_training_steps(store, std::vector<std::uint64_t>{100, 200, 300, 400, 425});
  const std::vector<EarlierFree> earlier_frees = kept_into_next_step(store, 0, steps);
  ASSERT_EQ(earlier_frees.size(), 4U);
  EXPECT_EQ(store.blocks.size[earlier_frees[3].block.value], 400U);
  EXPECT_EQ(earlier_frees[3].from, 15U) << "all events but the free of the last activations";
  EXPECT_EQ(earlier_frees[3].to, EarlierFree::kEnd);
}

// The same steps, but the old outputs go before the new ones are made.
TEST(Patterns, BlocksFreedBeforeTheirReplacementAreNotHeld) {
  Scenario scenario;
  const StackId head = scenario.stack({scenario.python("head", "/w/model.py", 7)});
  for (std::uint64_t step = 0; step < 5; ++step) {
    if (step > 0) scenario.free(100 * step, "outputs" + std::to_string(step - 1));
    scenario.allocate(100 * step + 10, "outputs" + std::to_string(step), 400, kGpu, head);
  }
  const Store store = scenario.store();
  const TrainingSteps steps = given_training_steps(store, std::vector<std::uint64_t>{5, 105, 205, 305, 405});
  EXPECT_TRUE(kept_into_next_step(store, 0, steps).empty());
}

// Old and new overlap in each layer of one step, as the input of an operation and its output do.
TEST(Patterns, OverlapsWithinAStepAreNotHeld) {
  Scenario scenario;
  const StackId layer = scenario.stack({scenario.python("layer", "/w/model.py", 7)});
  std::vector<std::uint64_t> starts;
  std::uint64_t time = 0;
  for (int step = 0; step < 5; ++step) {
    starts.push_back(time += 10);
    for (int number = 0; number < 6; ++number) {
      const std::string name = std::to_string(step) + "." + std::to_string(number);
      scenario.allocate(time += 10, name, 400, kCpu, layer);
      if (number > 0) scenario.free(time += 10, std::to_string(step) + "." + std::to_string(number - 1));
    }
    scenario.free(time += 10, std::to_string(step) + ".5");
  }
  const Store store = scenario.store();
  EXPECT_TRUE(kept_into_next_step(store, 0, given_training_steps(store, starts)).empty());
}

TEST(Patterns, AnUnknownDeviceIsAnError) {
  const Store store = double_buffer().store();
  Symbols symbols(store.definitions);
  EXPECT_FALSE(analyze_patterns(store, symbols, {"cuda:7", 10}).ok());
}

TEST(Patterns, ListsTheTopStacksAndSumsUpTheOthers) {
  const Patterns patterns = patterns_of(double_buffer().store(), {std::nullopt, 1});
  const Pattern& pattern = patterns.devices[0].freed_after_allocation;
  ASSERT_EQ(pattern.rows.size(), 1U);
  EXPECT_EQ(pattern.other_rows, 1U);
  EXPECT_EQ(pattern.other_peak_bytes, 400U);
}

}  // namespace
}  // namespace tidemark
