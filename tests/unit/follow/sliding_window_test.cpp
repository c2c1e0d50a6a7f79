// The window compared with the whole recording: live blocks, bytes and owners must be equal.
#include "follow/sliding_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/leaks/leaks.h"
#include "follow/recording_so_far.h"
#include "unit/analyze/model_scenario.h"
#include "unit/analyze/training_loop.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;

// Blocks of two devices that live for very different times; one every microsecond.
Scenario random_program(std::size_t steps) {
  Scenario scenario;
  std::mt19937 random(11);
  scenario.totals(kGpu, 1000, 1 << 20);
  std::multimap<std::size_t, std::pair<std::string, Device>> deaths;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::uint64_t time = 1000 * (step + 1);
    const std::string name = std::to_string(step);
    const Device device = random() % 3 == 0 ? kCpu : kGpu;
    scenario.allocate(time, name, 64 + random() % 4096, device);
    deaths.emplace(step + 1 + (random() % 50 == 0 ? random() % (2 * steps) : random() % 20), std::pair(name, device));
    for (; !deaths.empty() && deaths.begin()->first <= step; deaths.erase(deaths.begin())) {
      scenario.free(time + 500, deaths.begin()->second.first);
    }
  }
  return scenario;
}

using BlockKey = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, int>;

// Address, size, birth, death and device of the blocks that live at or after a time.
std::vector<BlockKey> blocks_since(const Store& store, std::uint64_t begin_ns) {
  std::vector<BlockKey> found;
  const Blocks& blocks = store.blocks;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const std::uint32_t death = blocks.death_change[block];
    const std::uint64_t death_ns = death == Blocks::kAlive ? ~std::uint64_t{0} : store.live_changes[death].time_ns;
    if (death_ns < begin_ns) continue;
    found.emplace_back(blocks.address[block], blocks.size[block],
                       store.live_changes[blocks.birth_change[block]].time_ns, death_ns,
                       static_cast<int>(store.devices[blocks.device[block]].device.type));
  }
  std::sort(found.begin(), found.end());
  return found;
}

const DeviceSummary& of(const Overview& overview, Device device) {
  return *std::find_if(overview.devices.begin(), overview.devices.end(),
                       [&](const DeviceSummary& summary) { return summary.device == device; });
}

void expect_same_end(const Store& window, const Store& whole) {
  for (const Device device : {kCpu, kGpu}) {
    const DeviceSummary& mine = of(window, device);
    const DeviceSummary& full = of(whole, device);
    EXPECT_EQ(mine.live_recorded_bytes, full.live_recorded_bytes);
    EXPECT_EQ(mine.live_allocated_bytes, full.live_allocated_bytes);
    EXPECT_EQ(mine.live_count, full.live_count);
    EXPECT_EQ(mine.end_reserved_bytes, full.end_reserved_bytes);
    EXPECT_EQ(mine.unmatched_free_count, 0U);
  }
}

TEST(SlidingWindow, ForgetsUnneededData) {
  const Scenario scenario = random_program(3000);
  const Store whole = scenario.store();
  SlidingWindow window({.length = 1h, .events = 1'000'000});
  for (const Event& event : scenario.events) window.add(event);
  const std::size_t before = window.event_count();
  window.forget_before(2'900'000);
  EXPECT_EQ(window.begin_ns(), 2'900'000U);
  EXPECT_LT(window.event_count(), before / 20);
  window.forget_before(2'000'000);  // which is forgotten already
  EXPECT_EQ(window.begin_ns(), 2'900'000U);
  const Store store = window.store("run.tide", scenario.definitions);
  EXPECT_EQ(blocks_since(store, window.begin_ns()), blocks_since(whole, window.begin_ns()));
  expect_same_end(store, whole);
}

TEST(SlidingWindow, HoldsTheBlocksOfTheWholeRecording) {
  const Scenario scenario = random_program(3000);
  const Store whole = scenario.store();
  for (const std::size_t most : {std::size_t{1'000'000}, std::size_t{700}}) {
    SlidingWindow window({.length = 1ms, .events = most});
    for (const Event& event : scenario.events) window.add(event);
    EXPECT_LE(window.event_count(), most);
    EXPECT_GE(window.begin_ns(), 2'000'000U);
    const Store store = window.store("run.tide", scenario.definitions);
    EXPECT_EQ(blocks_since(store, window.begin_ns()), blocks_since(whole, window.begin_ns()));
    EXPECT_EQ(store.blocks.count(), blocks_since(store, window.begin_ns()).size());
    expect_same_end(store, whole);
    ASSERT_EQ(store.pauses.size(), 1U);
    EXPECT_EQ(store.pauses[0], (Pause{0, window.begin_ns()}));
  }
}

TEST(SlidingWindow, IsTheWholeRecordingAtFirst) {
  const Scenario scenario = random_program(200);
  SlidingWindow window({.length = 1h, .events = 1'000'000});
  for (const Event& event : scenario.events) window.add(event);
  const Store store = window.store("run.tide", scenario.definitions);
  const Store whole = scenario.store();
  EXPECT_EQ(store.event_count, whole.event_count);
  EXPECT_TRUE(store.pauses.empty());
  EXPECT_EQ(blocks_since(store, 0), blocks_since(whole, 0));
  EXPECT_EQ(of(store, kGpu).peak_allocated_bytes, of(whole, kGpu).peak_allocated_bytes);
}

TEST(SlidingWindow, ForgetsAPeakThatIsOver) {
  Scenario scenario;
  scenario.allocate(1000, "kept", 100);
  scenario.allocate(2000, "peak", 1 << 20);
  scenario.free(3000, "peak");
  scenario.allocate(5'000'000, "late", 50);
  SlidingWindow window({.length = 1ms, .events = 100});
  for (const Event& event : scenario.events) window.add(event);
  const Store store = window.store("run.tide", scenario.definitions);
  EXPECT_EQ(store.devices.at(0).peak_allocated_bytes, 150U);
  EXPECT_EQ(store.blocks.count(), 2U);
  EXPECT_EQ(store.live_changes[store.blocks.birth_change[0]].time_ns, 1000U);
}

TEST(SlidingWindow, DropsSamplesAndMarksBeforeIt) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1 << 30);
  scenario.used(1000, gpu, 1);
  scenario.used(5'000'000, gpu, 2);
  scenario.mark(Mark::Kind::point, 1000, "early");
  scenario.mark(Mark::Kind::point, 5'000'000, "late");
  scenario.allocate(900, "block", 64);
  SlidingWindow window({.length = 1ms, .events = 100});
  for (const Event& event : scenario.events) window.add(event);
  for (const SampleRecord& sample : scenario.samples) window.add_sample(sample);
  const Store store = window.store("run.tide", scenario.definitions);
  ASSERT_EQ(store.samples.devices.size(), 1U);
  EXPECT_EQ(store.samples.devices[0].device.name, "NVIDIA H100");
  EXPECT_EQ(store.samples.devices[0].time_ns, std::vector<std::uint64_t>{5'000'000});
  ASSERT_EQ(store.definitions.marks.size(), 1U);
  EXPECT_EQ(store.definitions.marks[0].time_ns, 5'000'000U);
}

// A parameter that was allocated and named long before the window is a parameter inside it.
TEST(SlidingWindow, IsAttributedLikeTheRecording) {
  ModelScenario scenario;
  const NnModuleId model = scenario.root("Net");
  const StackId stack = scenario.stack({scenario.script(3)});
  scenario.allocate(1000, "weight", 4096, kGpu, stack);
  scenario.tensor(ModelTensor::Role::parameter, 2000, model, "weight");
  for (std::uint64_t index = 0; index < 10; ++index) {
    scenario.allocate(10'000'000 + 1000 * index, "t" + std::to_string(index), 64, kGpu, stack);
  }
  SlidingWindow window({.length = 1ms, .events = 100});
  for (const Event& event : scenario.events) window.add(event);
  const Store store = window.store("run.tide", scenario.definitions);
  ASSERT_EQ(store.blocks.count(), 11U);
  const Attribution attribution = attribute_blocks(store);
  EXPECT_EQ(attribution.blocks.at(0).category, Category::parameter);
  EXPECT_EQ(attribution.blocks.at(0).category_confidence, Confidence::exact);
}

// Blocks that were alive before it begin no step, the run has long warmed up, and the leak has its true size.
TEST(SlidingWindow, HasTheLastStepsOnly) {
  TrainingLoop loop(TrainingLoop::Stacks::named_optimizer);
  loop.keep_losses = true;
  std::vector<std::uint64_t> ends;
  loop.run(100, [&](int) { ends.push_back(loop.scenario.events.back().time_ns); });
  for (const std::size_t left : {std::size_t{60}, std::size_t{5}}) {  // steps before the window
    SlidingWindow window({.length = 1h, .events = 1'000'000});
    for (const Event& event : loop.scenario.events) window.add(event);
    window.forget_before(ends.at(left - 1) + 1);
    const Store store = window.store("run.tide", loop.scenario.definitions);
    Symbols symbols(store.definitions);
    LeakOptions options;
    options.min_growth = 0;
    const Leaks leaks = *analyze_leaks(store, symbols, options);
    EXPECT_EQ(leaks.steps.starts.size(), 100 - left);
    EXPECT_GT(leaks.steps.starts.front().time_ns, window.begin_ns());
    EXPECT_TRUE(leaks.of_last_part);
    EXPECT_EQ(leaks.warmup_steps, left == 60 ? 0U : 9U);
    ASSERT_EQ(leaks.leaks.size(), 1U);
    EXPECT_DOUBLE_EQ(leaks.leaks[0].growth.bytes_per_step.value, 512);
  }
}

TEST(RecordingSoFar, EqualsTheWholeFile) {
  const Scenario scenario = random_program(500);
  for (const bool blocks : {true, false}) {
    RecordingSoFar so_far(blocks);
    for (std::size_t index = 0; index < scenario.events.size(); ++index) {
      so_far.add(scenario.events[index]);
      if (index % 100 == 0) static_cast<void>(so_far.overview("run.tide", scenario.definitions));
      if (index % 100 == 0 && blocks) static_cast<void>(so_far.store("run.tide", scenario.definitions));
    }
    const Overview expected = scenario.overview();
    const Overview overview = so_far.overview("run.tide", scenario.definitions);
    EXPECT_EQ(overview.event_count, expected.event_count);
    EXPECT_EQ(of(overview, kGpu).peak_allocated_bytes, of(expected, kGpu).peak_allocated_bytes);
    EXPECT_EQ(overview.stacks_at_peak.size(), expected.stacks_at_peak.size());
    EXPECT_EQ(so_far.keeps_blocks(), blocks);
    if (blocks) expect_same_end(so_far.store("run.tide", scenario.definitions), scenario.store());
    so_far.drop_blocks();
    EXPECT_FALSE(so_far.keeps_blocks());
    EXPECT_EQ(so_far.overview("run.tide", scenario.definitions).event_count, expected.event_count);
  }
}

}  // namespace
}  // namespace tidemark::testing
