// Real training without a leak: 2-layer and 12-layer models, fixed and random shapes, with stacks and without.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "analyze/leaks/leaks.h"
#include "import/open.h"
#include "store/builder.h"

namespace tidemark {
namespace {

struct Run {
  const char* name;
  std::size_t steps;  // number of the program's steps
  LeakVerdict verdict;
  std::size_t more = 0;  // steps found beyond these, by chance repetition of sizes
};

void PrintTo(const Run& run, std::ostream* out) {
  *out << run.name;
}

class LeaksOfSnapshot : public ::testing::TestWithParam<Run> {};

TEST_P(LeaksOfSnapshot, TheOptimizersAnnotationsAreItsSteps) {
  const std::string path = std::string(TIDEMARK_SHARED_SNAPSHOTS "/") + GetParam().name + ".pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.error().message;
  Symbols symbols(store->definitions);
  const auto leaks = analyze_leaks(*store, symbols, {});
  ASSERT_TRUE(leaks.ok());
  EXPECT_EQ(leaks->steps.source, TrainingSteps::Source::annotation);
  EXPECT_EQ(leaks->mark, "Optimizer.step#AdamW.step");
  EXPECT_EQ(leaks->steps.starts.size(), GetParam().steps);
  EXPECT_EQ(leaks->verdict, GetParam().verdict);
}

TEST_P(LeaksOfSnapshot, HasStepsAndNoLeakWithoutAnnotations) {
  const std::string path = std::string(TIDEMARK_SHARED_SNAPSHOTS "/") + GetParam().name + ".pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.error().message;
  store->definitions.marks.clear();
  Symbols symbols(store->definitions);
  const auto leaks = analyze_leaks(*store, symbols, {});
  ASSERT_TRUE(leaks.ok());
  EXPECT_EQ(leaks->verdict, GetParam().verdict);
  EXPECT_GE(leaks->steps.starts.size(), GetParam().steps);
  EXPECT_LE(leaks->steps.starts.size(), GetParam().steps + GetParam().more);
  EXPECT_TRUE(leaks->leaks.empty());
}

TEST_P(LeaksOfSnapshot, HasStepsAndNoLeakWithoutStacks) {
  const std::string path = std::string(TIDEMARK_SHARED_SNAPSHOTS "/") + GetParam().name + ".pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  if (GetParam().verdict == LeakVerdict::insufficient_data) GTEST_SKIP() << "too few steps";
  auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.error().message;
  store->definitions.marks.clear();
  std::fill(store->blocks.stack.begin(), store->blocks.stack.end(), StackId{});
  Symbols symbols(store->definitions);
  const auto leaks = analyze_leaks(*store, symbols, {});
  ASSERT_TRUE(leaks.ok());
  EXPECT_EQ(leaks->steps.source, TrainingSteps::Source::sizes);
  EXPECT_GE(leaks->steps.starts.size(), GetParam().steps);
  EXPECT_LE(leaks->steps.starts.size(), GetParam().steps + 3);
  EXPECT_EQ(leaks->verdict, LeakVerdict::no_leak);
}

// The same run with one more block of `bytes` in each of `steps`, made by `stack` and never freed.
Store with_leak(const Store& store, const TrainingSteps& steps, StackId stack, std::uint64_t bytes) {
  constexpr std::uint64_t kIntoTheStep = 10;  // events
  StoreBuilder builder;
  auto next = steps.starts.begin();
  for (std::uint32_t index = 0; index < store.live_changes.size(); ++index) {
    const LiveChange& live_change = store.live_changes[index];
    const std::uint32_t block = live_change.block.value;
    Event event;
    event.kind = live_change.birth ? EventKind::allocate : EventKind::free;
    event.time_ns = live_change.time_ns;
    event.device = store.devices[store.blocks.device[block]].device;
    event.slot = SlotId{block};
    event.address = store.blocks.address[block];
    event.size = store.blocks.size[block];
    event.stack = store.blocks.stack[block];
    builder.add(event);
    if (next == steps.starts.end() || index != next->event_count + kIntoTheStep) continue;
    event.kind = EventKind::allocate;
    event.slot = SlotId{static_cast<std::uint32_t>(store.blocks.count()) +
                        static_cast<std::uint32_t>(next - steps.starts.begin())};
    event.address = 0x10000 + event.slot.value * bytes;
    event.size = bytes;
    event.stack = stack;
    builder.add(event);
    ++next;
  }
  return std::move(builder).finish(store.path, store.definitions);
}

StackId most_frequent_stack(const Store& store) {
  std::map<StackId, std::size_t> counts;
  for (const StackId stack : store.blocks.stack) ++counts[stack];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& left, const auto& right) { return left.second < right.second; })
      ->first;
}

// 512 bytes a step among gigabytes: without a stack, and by the stack that allocates most.
TEST_P(LeaksOfSnapshot, ShowsALeakPutIntoIt) {
  const std::string path = std::string(TIDEMARK_SHARED_SNAPSHOTS "/") + GetParam().name + ".pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  if (GetParam().verdict == LeakVerdict::insufficient_data) GTEST_SKIP() << "too few steps";
  const auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.error().message;
  const TrainingSteps steps = find_training_steps(*store);
  for (const StackId stack : {StackId{}, most_frequent_stack(*store)}) {
    const Store leaking = with_leak(*store, steps, stack, 512);
    Symbols symbols(leaking.definitions);
    LeakOptions options;
    const auto above_floor = analyze_leaks(leaking, symbols, options);
    ASSERT_TRUE(above_floor.ok());
    EXPECT_TRUE(above_floor->leaks.empty());
    EXPECT_EQ(above_floor->small_leak_count, 1U);
    options.min_growth = 0;
    const auto leaks = analyze_leaks(leaking, symbols, options);
    ASSERT_TRUE(leaks.ok());
    ASSERT_EQ(leaks->leaks.size(), 1U);
    EXPECT_EQ(leaks->leaks[0].stack.frames.size(), symbols.frames(stack).size());
    EXPECT_NEAR(leaks->leaks[0].growth.bytes_per_step.value, 512, 512 * 0.05);
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, LeaksOfSnapshot,
                         ::testing::Values(Run{"healthy", 60, LeakVerdict::no_leak},
                                           Run{"lora_python_stacks", 40, LeakVerdict::no_leak},
                                           Run{"lora_native_stacks", 40, LeakVerdict::no_leak},
                                           Run{"varlen", 60, LeakVerdict::no_leak},
                                           Run{"varlen_expandable", 60, LeakVerdict::no_leak, 3},
                                           Run{"varlen_max_split_64", 60, LeakVerdict::no_leak, 3},
                                           Run{"oom", 6, LeakVerdict::insufficient_data}),
                         [](const auto& run) { return std::string(run.param.name); });

}  // namespace
}  // namespace tidemark
