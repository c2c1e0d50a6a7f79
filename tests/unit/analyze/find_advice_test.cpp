// Advice for programs that have a fault, and none for the same program without it. Whose the blocks are is given here.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/advice/rules.h"
#include "analyze/attribution/phase_runs.h"
#include "base/units.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::Scenario;

// Builds a recording block by block; sizes in MiB.
class Loop {
 public:
  void allocate(const std::string& block, std::uint64_t mib, Phase phase, Category category,
                const std::string& module = "") {
    scenario.allocate(++time_ns_, block, mib * kMiB, kGpu);
    Owner owner;
    owner.phase = phase;
    owner.category = category;
    owner.category_known = KnownAs::derived;
    if (!module.empty()) {
      owner.module = path(module);
      if (module == "lm_head") owner.component = Component::head;
    }
    attribution.blocks.push_back(owner);
  }
  void free(const std::string& block) { scenario.free(++time_ns_, block); }
  /// The latest block is the storage of this tensor.
  void is_tensor(ModelTensor::Role role, bool requires_grad) {
    ModelTensor tensor;
    tensor.role = role;
    tensor.requires_grad = requires_grad;
    scenario.definitions.tensors.push_back(tensor);
    attribution.tensors.push_back({{static_cast<std::uint32_t>(attribution.blocks.size() - 1)},
                                   static_cast<std::uint32_t>(scenario.definitions.tensors.size() - 1)});
  }
  std::map<AdviceKind, Advice> advice() {
    const Store store = scenario.store();
    Symbols symbols(store.definitions);
    std::vector<Phase> phases;
    for (const Owner& owner : attribution.blocks) phases.push_back(owner.phase);
    attribution.phases = phase_spans(store, find_phase_runs(store, phases));
    std::map<AdviceKind, Advice> found;
    for (Advice& one : find_advice(store, symbols, attribution, 0)) found[one.kind] = one;
    return found;
  }

  Scenario scenario;
  Attribution attribution;

 private:
  ModulePathId path(const std::string& name) {
    auto& modules = attribution.modules;
    for (std::uint32_t n = 0; n < modules.size(); ++n) {
      if (modules[n].path == name) return {n};
    }
    modules.push_back({name, "", Component::other});
    return {static_cast<std::uint32_t>(modules.size() - 1)};
  }

  std::uint64_t time_ns_ = 0;
};

// Three steps of two layers, each of which makes 60 and then 40 MiB that are kept for the backward pass. Weights take
// 10, gradients 10, a temporary of the forward pass 30.
//
//   allocated in step 2 and 3          gradients kept          freed by the optimizer
//   before the forward pass                 20                          10
//   after layer 0, layer 1              120, 220                     110, 210
//   with the temporary                     250  the peak                240  the peak
//   in the backward pass, at most          221                          221
Loop training(bool keeps_gradients) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  for (int step = 0; step < 3; ++step) {
    const std::string number = std::to_string(step);
    for (const std::string layer : {"0", "1"}) {
      const std::string module = "model.layers." + layer;
      loop.allocate("x" + layer + number, 60, Phase::forward, Category::activation, module + ".mlp");
      loop.allocate("y" + layer + number, 40, Phase::forward, Category::activation, module);
    }
    loop.allocate("temporary" + number, 30, Phase::forward, Category::temporary);
    loop.free("temporary" + number);
    loop.allocate("seed" + number, 1, Phase::backward, Category::temporary);
    if (step == 0 || !keeps_gradients) loop.allocate("gradient" + number, 10, Phase::backward, Category::gradient);
    for (const std::string block : {"y1", "x1", "y0", "x0"}) loop.free(block + number);
    loop.free("seed" + number);
    loop.allocate("update" + number, 5, Phase::optimizer, Category::temporary);
    loop.free("update" + number);
    if (!keeps_gradients) loop.free("gradient" + number);
  }
  return loop;
}

TEST(FindAdvice, FreesGradientsBeforeTheForwardPass) {
  const auto found = training(true).advice();
  ASSERT_TRUE(found.contains(AdviceKind::gradients_in_forward));
  const Advice& advice = found.at(AdviceKind::gradients_in_forward);
  EXPECT_EQ(advice.avoidable_peak_bytes, 10 * kMiB);
  EXPECT_EQ(advice.peak_bytes, 10 * kMiB);
  EXPECT_EQ(advice.peak_blocks, 1U);
  EXPECT_EQ(advice.known_as, KnownAs::derived);
  EXPECT_FALSE(training(false).advice().contains(AdviceKind::gradients_in_forward));
}

TEST(FindAdvice, GradientsThatAreBeingAccumulatedStay) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  for (const std::string part : {"a", "b"}) {
    loop.allocate("x" + part, 60, Phase::forward, Category::activation);
    if (part == "a") loop.allocate("gradient", 10, Phase::backward, Category::gradient);
    loop.free("x" + part);
    loop.allocate("seed" + part, 1, Phase::backward, Category::temporary);
    loop.free("seed" + part);
  }
  loop.allocate("update", 5, Phase::optimizer, Category::temporary);
  EXPECT_TRUE(loop.advice().empty());
}

// With checkpointing both x are away from the end of their layer to its backward pass. The most is then at the end of
// the second layer: weights 10, gradients 10, y0 40, x1 60, y1 40 = 160 of 250.
TEST(FindAdvice, CheckpointsTheRepeatedLayers) {
  const auto found = training(true).advice();
  ASSERT_TRUE(found.contains(AdviceKind::checkpoint_activations));
  const Advice& advice = found.at(AdviceKind::checkpoint_activations);
  EXPECT_EQ(advice.avoidable_peak_bytes, 90 * kMiB);
  EXPECT_EQ(advice.peak_bytes, 120 * kMiB);
  ASSERT_EQ(advice.modules.size(), 2U);
  EXPECT_EQ(advice.modules[0].path, "model.layers.0");
  EXPECT_EQ(advice.modules[0].bytes, 60 * kMiB);
  EXPECT_EQ(advice.modules[1].path, "model.layers.1");
}

TEST(FindAdvice, FindsWhatBelongsToFrozenParameters) {
  for (const bool frozen : {true, false}) {
    Loop loop;
    loop.allocate("weights", 50, Phase::other, Category::parameter);
    loop.allocate("gradient", 20, Phase::backward, Category::gradient);
    loop.is_tensor(ModelTensor::Role::gradient, !frozen);
    loop.allocate("state", 30, Phase::optimizer, Category::optimizer_state);
    loop.is_tensor(ModelTensor::Role::optimizer_state, !frozen);
    const auto found = loop.advice();
    EXPECT_EQ(found.size(), frozen ? 2U : 0U);
    if (!frozen) continue;
    EXPECT_EQ(found.at(AdviceKind::frozen_gradients).avoidable_peak_bytes, 20 * kMiB);
    EXPECT_EQ(found.at(AdviceKind::frozen_optimizer_state).avoidable_peak_bytes, 30 * kMiB);
  }
}

// Logits of 100 MiB in 16 bits, their copy in 32 bits (200), its log-softmax (200) and the gradient (200). At the peak
// all of them: weights 60 + 700. Without them: weights and the activation of a layer, which has the logits' size by
// chance.
TEST(FindAdvice, FindsCopiesOfLogits) {
  Loop loop;
  loop.allocate("weights", 60, Phase::other, Category::parameter);
  loop.allocate("x", 100, Phase::forward, Category::activation, "model.layers.0");
  loop.free("x");
  loop.allocate("logits", 100, Phase::forward, Category::activation, "lm_head");
  loop.allocate("float", 200, Phase::forward, Category::activation);
  loop.allocate("log_softmax", 200, Phase::forward, Category::activation);
  loop.allocate("gradient of logits", 200, Phase::backward, Category::temporary);
  const auto found = loop.advice();
  ASSERT_EQ(found.size(), 1U);
  const Advice& advice = found.at(AdviceKind::logits);
  EXPECT_EQ(advice.avoidable_peak_bytes, 600 * kMiB);
  EXPECT_EQ(advice.peak_bytes, 700 * kMiB);
  EXPECT_EQ(advice.peak_blocks, 4U);
}

// Made by C++ code that DistributedDataParallel calls; the gradients lie in blocks of their own.
TEST(FindAdvice, FindsGradientBucketsBesideGradients) {
  for (const bool view : {false, true}) {
    Loop loop;
    const std::string file = "/p/site-packages/torch/nn/parallel/distributed.py";
    const StackId made = loop.scenario.stack({loop.scenario.python("DistributedDataParallel._pre_forward", file, 5),
                                              loop.scenario.native("libtorch_cpu.so", 9)});
    loop.allocate("weights", 40, Phase::other, Category::parameter);
    loop.scenario.allocate(50, "bucket", 20 * kMiB, kGpu, made);
    loop.attribution.blocks.emplace_back();
    loop.attribution.blocks.back().category = view ? Category::gradient : Category::unknown;
    loop.attribution.blocks.back().category_known = view ? KnownAs::exact : KnownAs::unknown;
    const auto found = loop.advice();
    EXPECT_EQ(found.size(), view ? 0U : 1U);
    if (view) continue;
    EXPECT_EQ(found.at(AdviceKind::gradient_buckets).avoidable_peak_bytes, 20 * kMiB);
  }
}

TEST(FindAdvice, FindsCopiesOfCheckpoints) {
  Loop loop;
  loop.allocate("weights", 40, Phase::other, Category::parameter);
  loop.allocate("saved", 40, Phase::other, Category::copy);
  const auto found = loop.advice();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.at(AdviceKind::checkpoint_copies).avoidable_peak_bytes, 40 * kMiB);
}

TEST(FindAdvice, NamesRepeatedLayers) {
  EXPECT_EQ(advice::layer_of("model.layers.3.mlp.experts.1.w1"), "model.layers.3");
  EXPECT_EQ(advice::layer_of("layer1.0.conv1"), "layer1.0");
  EXPECT_EQ(advice::layer_of("0"), "0");
  EXPECT_EQ(advice::layer_of("model.norm"), "");
  EXPECT_EQ(advice::layer_of(""), "");
}

}  // namespace
}  // namespace tidemark
