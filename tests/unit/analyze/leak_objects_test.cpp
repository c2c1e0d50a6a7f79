// Groups leaks by object. Owners of blocks are given here.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/advice/rules.h"
#include "analyze/leaks/leaks.h"
#include "analyze/oom/explain.h"
#include "unit/analyze/phase_spans_of.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::Scenario;

constexpr int kRounds = 24;
// A step begins with the optimizer's, so the blocks of loop k are seen from boundary k on. Two steps are warm-up.
constexpr std::uint64_t kHeldSteps = kRounds - 3;
constexpr std::uint64_t kInput = 1000;
constexpr std::uint64_t kUp = 4000;
constexpr std::uint64_t kDown = 2000;
constexpr std::uint64_t kLoss = 8;
constexpr std::uint64_t kGraph = kUp + kDown + kLoss + kInput;

// A model of two layers in training, with options to keep the tensors of a step.
class GraphLoop {
 public:
  bool keep_input = false;
  bool keep_up = false;
  bool keep_down = false;
  bool keep_loss = false;
  Phase input_phase = Phase::data;
  bool makes_nodes = true;            // false: torch.no_grad()
  std::uint64_t cached = 0;           // bytes a step that something else keeps
  std::uint64_t weight = 10'000'000;  // large compared with the other blocks
  int first_kept = 0;                 // step

  bool keeps_after_step = false;  // the graph of another forward pass, without a backward pass

  void keep_graph() { keep_input = keep_up = keep_down = keep_loss = true; }

  void run() {
    const StackId main = place({}, "<module>", 90);
    const StackId train = place(main, "train", 40);
    allocate("weight", weight, place(main, "init", 1), Phase::other, Category::parameter);
    for (int step = 0; step < kRounds; ++step) {
      const std::string number = std::to_string(step);
      allocate("input" + number, kInput, place(train, "load", 3), input_phase,
               input_phase == Phase::forward ? Category::activation : Category::input);
      allocate("up" + number, kUp, place(train, "forward", 5), Phase::forward, Category::activation, "layers.0");
      allocate("temporary", 64, place(train, "forward", 6), Phase::forward, Category::temporary, "layers.0");
      free("temporary");
      allocate("down" + number, kDown, place(train, "forward", 7), Phase::forward, Category::activation, "layers.1");
      allocate("loss" + number, kLoss, place(main, "loss", 41), Phase::forward, Category::activation);
      const bool may_keep = step >= first_kept;
      allocate("gradient", 500, {}, Phase::backward, Category::gradient);
      if (!keep_down || !may_keep) free("down" + number);
      if (!keep_up || !may_keep) free("up" + number);
      allocate("update", 700, place(main, "step", 9, "/site-packages/torch/optim/adamw.py"), Phase::optimizer,
               Category::temporary);
      free("update");
      free("gradient");
      if (!keep_loss || !may_keep) free("loss" + number);
      if (!keep_input || !may_keep) free("input" + number);
      if (keeps_after_step) {
        allocate("kept up" + number, kUp, place(train, "forward", 5), Phase::forward, Category::activation);
        allocate("kept loss" + number, kLoss, place(main, "mean", 55), Phase::forward, Category::activation);
      }
      if (cached != 0) allocate("cached" + number, cached, place(main, "cache", 77), Phase::other, Category::unknown);
    }
  }

  [[nodiscard]] Result<Leaks> analyze(LeakOptions options = {}) {
    const Store store = scenario_.store();
    Symbols symbols(store.definitions);
    attribution_.phases = testing::phase_spans_of(store, attribution_);
    if (options.attribution == nullptr) options.attribution = &attribution_;
    return analyze_leaks(store, symbols, options);
  }
  /// A request that fails when the loop is over.
  [[nodiscard]] OomFailure fail() {
    scenario_.totals(kGpu, 0, weight);
    scenario_.out_of_memory(time_ += 1000, kGraph, kGpu);
    const Store store = scenario_.store();
    Symbols symbols(store.definitions);
    attribution_.phases = testing::phase_spans_of(store, attribution_);
    attribution_.out_of_memory.resize(1);
    ExplainOptions options;
    options.attribution = &attribution_;
    return analyze_explain(store, symbols, options)->failures.at(0);
  }
  [[nodiscard]] std::uint64_t advised_bytes() {
    const Store store = scenario_.store();
    Symbols symbols(store.definitions);
    attribution_.phases = testing::phase_spans_of(store, attribution_);
    const TrainingSteps steps = find_training_steps(store);
    std::uint64_t bytes = 0;
    for (const EarlierFree& away : advice::retained_graph({store, symbols, attribution_, 0, steps, {}, {}})) {
      bytes += store.blocks.size[away.block.value];
    }
    return bytes;
  }

 private:
  StackId place(StackId caller, const std::string& function, std::uint32_t line, const std::string& file = "train.py") {
    const auto [entry, is_new] = places_.try_emplace({caller, function, line});
    if (is_new) entry->second = scenario_.push(caller, scenario_.python(function, file, line));
    return entry->second;
  }
  void allocate(const std::string& block, std::uint64_t bytes, StackId stack, Phase phase, Category category,
                const std::string& module = "") {
    scenario_.allocate(time_ += 1000, block, bytes, kGpu, stack);
    if (makes_nodes && phase == Phase::forward && !block.starts_with("input")) ++sequence_;
    scenario_.events.back().sequence = sequence_;
    Owner& owner = attribution_.blocks.emplace_back();
    owner.phase = phase;
    owner.category = category;
    owner.category_confidence = Confidence::estimated;
    if (module.empty()) return;
    for (owner.module.value = 0; owner.module.value < attribution_.modules.size(); ++owner.module.value) {
      if (attribution_.modules[owner.module.value].path == module) return;
    }
    attribution_.modules.push_back({module, "Linear", Component::mlp});
  }
  void free(const std::string& block) { scenario_.free(time_ += 1000, block); }

  Scenario scenario_;
  Attribution attribution_;
  std::map<std::tuple<StackId, std::string, std::uint32_t>, StackId> places_;
  std::uint64_t time_ = 0;
  std::uint64_t sequence_ = 1;
};

LeakOptions without_floor() {
  LeakOptions options;
  options.min_growth = 0;
  return options;
}

std::map<std::string, double> rates_of(const GrowthByOwner& growth) {
  std::map<std::string, double> rates;
  for (const OwnedGrowth& row : growth.rows) rates[row.owner.name.value_or("-")] = row.bytes_per_step;
  return rates;
}

TEST(LeakObjectsTest, RetainedGraphIsOneFinding) {
  GraphLoop loop;
  loop.keep_graph();
  loop.run();
  const Leaks leaks = *loop.analyze();
  ASSERT_EQ(leaks.objects.size(), 1U);
  const LeakObject& graph = leaks.objects[0];
  EXPECT_EQ(graph.kind, LeakObjectKind::autograd_graph);
  EXPECT_EQ(graph.confidence(), Confidence::estimated);
  EXPECT_EQ(graph.leaks, 4U);
  EXPECT_DOUBLE_EQ(graph.growth.bytes_per_step.value, kGraph);
  EXPECT_DOUBLE_EQ(graph.growth.blocks_per_step, 4);
  EXPECT_EQ(graph.held_bytes, kHeldSteps * kGraph);
  EXPECT_EQ(graph.held_blocks, kHeldSteps * 4);
  EXPECT_EQ(graph.last.frames.at(graph.last.call_site).function, "loss");
  ASSERT_TRUE(graph.caller);
  EXPECT_EQ(graph.caller->function, "<module>");
  EXPECT_EQ(graph.caller->line, 90U);
  ASSERT_EQ(graph.owners.size(), 2U);
  EXPECT_EQ(rates_of(graph.owners[0]),
            (std::map<std::string, double>{{"activation", kUp + kDown + kLoss}, {"input", kInput}}));
  EXPECT_EQ(
      rates_of(graph.owners[1]),
      (std::map<std::string, double>{{"layers.0", kUp}, {"layers.1", kDown}, {"(train.py:41)", kLoss}, {"-", kInput}}));
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, kGraph);
  ASSERT_EQ(leaks.leaks.size(), 4U);
  for (const LeakSite& site : leaks.leaks) EXPECT_EQ(site.object, 0U);
}

// The forward pass of the graph that is kept and the next step's are one, with the next step's input between them: it
// is newer than the tensor that the graph ends in.
TEST(LeakObjectsTest, AGraphEndsInTheTensorThatAutogradMadeLast) {
  GraphLoop loop;
  loop.keeps_after_step = true;
  loop.keep_input = true;
  loop.input_phase = Phase::forward;
  loop.run();
  const Leaks leaks = *loop.analyze();
  ASSERT_EQ(leaks.objects.size(), 1U);
  const LeakObject& graph = leaks.objects[0];
  EXPECT_EQ(graph.kind, LeakObjectKind::autograd_graph);
  EXPECT_EQ(graph.leaks, 3U);
  EXPECT_EQ(graph.last.frames.at(graph.last.call_site).function, "mean");
}

TEST(LeakObjectsTest, PossibleInputsStaySeparate) {
  GraphLoop loop;
  loop.input_phase = Phase::other;
  loop.keep_graph();
  loop.run();
  const Leaks leaks = *loop.analyze(without_floor());
  ASSERT_EQ(leaks.objects.size(), 2U);
  EXPECT_EQ(leaks.objects[0].kind, LeakObjectKind::autograd_graph);
  EXPECT_DOUBLE_EQ(leaks.objects[0].growth.bytes_per_step.value, kGraph - kInput);
  EXPECT_FALSE(leaks.objects[0].perhaps_input);
  EXPECT_EQ(leaks.objects[1].kind, LeakObjectKind::call_site);
  EXPECT_TRUE(leaks.objects[1].perhaps_input);
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, kGraph);
}

TEST(LeakObjectsTest, NothingIsRetainedWithoutTheFault) {
  GraphLoop loop;
  loop.run();
  EXPECT_EQ(loop.analyze()->verdict, LeakVerdict::no_leak);
  EXPECT_TRUE(loop.analyze()->objects.empty());
  EXPECT_EQ(loop.advised_bytes(), 0U);
}

TEST(LeakObjectsTest, OutputsThatAreKeptAreNoGraph) {
  GraphLoop loop;
  loop.keep_down = loop.keep_loss = true;  // 2008 of the 6008 bytes of activations
  loop.run();
  const Leaks leaks = *loop.analyze();
  ASSERT_EQ(leaks.objects.size(), 1U);
  EXPECT_EQ(leaks.objects[0].kind, LeakObjectKind::forward_pass);
  EXPECT_EQ(leaks.objects[0].leaks, 2U);
  EXPECT_EQ(loop.advised_bytes(), 0U);
}

TEST(LeakObjectsTest, WithoutAutogradNodesThereIsNoGraph) {
  GraphLoop loop;
  loop.makes_nodes = false;
  loop.keep_graph();
  loop.run();
  const Leaks leaks = *loop.analyze();
  ASSERT_EQ(leaks.objects.size(), 1U);
  EXPECT_EQ(leaks.objects[0].kind, LeakObjectKind::forward_pass);
}

TEST(LeakObjectsTest, OneTensorIsOneCallSite) {
  GraphLoop loop;
  loop.keep_down = true;
  loop.run();
  const Leaks leaks = *loop.analyze();
  ASSERT_EQ(leaks.objects.size(), 1U);
  EXPECT_EQ(leaks.objects[0].kind, LeakObjectKind::call_site);
  EXPECT_EQ(leaks.objects[0].confidence(), Confidence::exact);
  EXPECT_TRUE(leaks.objects[0].owners.empty());
}

TEST(LeakObjectsTest, InputsAloneAreCallSites) {
  GraphLoop loop;
  loop.keep_input = true;
  loop.run();
  const Leaks leaks = *loop.analyze(without_floor());
  ASSERT_EQ(leaks.objects.size(), 1U);
  EXPECT_EQ(leaks.objects[0].kind, LeakObjectKind::call_site);
  EXPECT_FALSE(leaks.objects[0].perhaps_input);
}

TEST(LeakObjectsTest, AnotherLeakOfTheSameStepsStaysByItself) {
  GraphLoop loop;
  loop.keep_graph();
  loop.cached = 3000;
  loop.run();
  const Leaks leaks = *loop.analyze();
  ASSERT_EQ(leaks.objects.size(), 2U);
  EXPECT_EQ(leaks.objects[0].kind, LeakObjectKind::autograd_graph);
  EXPECT_EQ(leaks.objects[1].kind, LeakObjectKind::call_site);
  EXPECT_DOUBLE_EQ(leaks.objects[1].growth.bytes_per_step.value, 3000);
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, kGraph + 3000);
  EXPECT_EQ(leaks.leak_count, 5U);
  for (const LeakSite& site : leaks.leaks) EXPECT_EQ(site.object, site.held_bytes == kHeldSteps * 3000 ? 1U : 0U);
}

TEST(LeakObjectsTest, FloorIsOfTheObject) {
  GraphLoop loop;
  loop.keep_graph();
  loop.run();
  LeakOptions options;
  options.min_growth = kUp + 1;
  EXPECT_EQ(loop.analyze(options)->leak_count, 4U);
  options.min_growth = kGraph + 1;
  const Leaks leaks = *loop.analyze(options);
  EXPECT_EQ(leaks.verdict, LeakVerdict::no_leak);
  EXPECT_EQ(leaks.small_leak_count, 4U);
}

TEST(LeakObjectsTest, WithoutAttributionEachLeakIsAnObject) {
  GraphLoop loop;
  loop.keep_graph();
  loop.run();
  Attribution nothing;
  nothing.blocks.resize(1000);
  LeakOptions options = without_floor();
  options.attribution = &nothing;
  const Leaks leaks = *loop.analyze(options);
  EXPECT_EQ(leaks.objects.size(), 4U);
  EXPECT_DOUBLE_EQ(leaks.bytes_per_step, kGraph);
}

TEST(LeakObjectsTest, OwnersAddUp) {
  GraphLoop loop;
  loop.keep_graph();
  loop.cached = 3500;
  loop.run();
  LeakOptions options;
  options.by = OwnerKind::module;
  options.top = 1;
  const Leaks leaks = *loop.analyze(options);
  ASSERT_EQ(leaks.owners.size(), 1U);
  const GrowthByOwner& growth = leaks.owners[0].growth;
  ASSERT_EQ(growth.rows.size(), 1U);
  EXPECT_EQ(growth.rows[0].owner.name, std::nullopt);  // outside of modules and forward passes
  EXPECT_NEAR(growth.rows[0].bytes_per_step, kInput + 3500, 1e-6);
  EXPECT_EQ(growth.other_rows, 3U);  // two layers, and the line of the loss
  EXPECT_NEAR(growth.other.bytes_per_step, kUp + kDown + kLoss, 1e-6);
  EXPECT_EQ(growth.other.held_bytes, kHeldSteps * (kUp + kDown + kLoss));
  options.by = OwnerKind::component;  // no block has one
  EXPECT_FALSE(loop.analyze(options).ok());
}

TEST(LeakObjectsTest, OutOfMemoryErrorsAreExplainedByTheGraph) {
  GraphLoop loop;
  loop.keep_graph();
  loop.run();
  const OomFailure failure = loop.fail();
  ASSERT_EQ(failure.leaks.size(), 4U);
  ASSERT_LT(failure.leaks[0].object, failure.leak_objects.size());
  const LeakObject& object = failure.leak_objects[failure.leaks[0].object];
  EXPECT_EQ(object.kind, LeakObjectKind::autograd_graph);
  EXPECT_EQ(object.leaks, 4U);
  EXPECT_EQ(object.last.frames.at(1).function, "loss");
}

TEST(LeakObjectsTest, AdviceIsAboutAllThatIsHeld) {
  GraphLoop loop;
  loop.keep_graph();
  loop.run();
  EXPECT_EQ(loop.advised_bytes(), (kRounds - 1) * kGraph);  // the first loop's are from before the first step
}

}  // namespace
}  // namespace tidemark
